# For those who build with Docker; `make images` needs none. Both take the files of
# an image from hack/images: one static program, a name for its user, its bill of
# materials; no shell, not root. A target for each program, the operator by default.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG PROGRAM=dynamo-operator
ARG TARGETARCH=amd64
ARG VERSION=dev
ARG COMMIT=unknown
ARG DATE=1970-01-01
ARG LDFLAGS="-s -w"
RUN go run ./hack/images --unpack --out /out --programs "$PROGRAM" --platforms "linux/$TARGETARCH" \
    --version "$VERSION" --commit "$COMMIT" --date "$DATE" --ldflags "$LDFLAGS"

FROM scratch AS image
ARG VERSION=dev
ARG COMMIT=unknown
ARG DATE=1970-01-01
COPY --from=build /out/ /
ENV PATH=/
WORKDIR /
USER 65532:65532
LABEL org.opencontainers.image.version=$VERSION
LABEL org.opencontainers.image.revision=$COMMIT
LABEL org.opencontainers.image.created=${DATE}T00:00:00Z
LABEL org.opencontainers.image.licenses=Apache-2.0
LABEL org.opencontainers.image.source=https://github.com/dynamo-operator/dynamo-operator

# Docker reads what a container starts with as it stands, so PROGRAM cannot be
# named there: build these with --target and --build-arg PROGRAM of one name.
FROM image AS dynamo-mocker
LABEL org.opencontainers.image.title=dynamo-mocker
ENTRYPOINT ["/dynamo-mocker"]

FROM image AS dynamo-profiler
LABEL org.opencontainers.image.title=dynamo-profiler
ENTRYPOINT ["/dynamo-profiler"]

FROM image AS dynamo-operator
LABEL org.opencontainers.image.title=dynamo-operator
ENTRYPOINT ["/dynamo-operator"]
