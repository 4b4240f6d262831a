# Copyright The Caldera Authors.
# SPDX-License-Identifier: Apache-2.0

# Built by: make image
FROM golang:1.26 AS build
WORKDIR /src
# Modules first: they change less often than the code.
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN make GOFLAGS=-trimpath _output/bin/kube-scheduler

FROM gcr.io/distroless/static:nonroot
COPY --from=build /src/_output/bin/kube-scheduler /usr/local/bin/kube-scheduler
COPY --from=build /src/LICENSE /LICENSE
USER 65532:65532
EXPOSE 10259
ENTRYPOINT ["/usr/local/bin/kube-scheduler"]
