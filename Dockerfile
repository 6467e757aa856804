# For those who build with Docker; `make images` needs none. Both take the files of
# an image from hack/images: one static program, a name for its user, its bill of
# materials, other names of the mock engine; no shell, not root. A target for each program, the operator by default.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG PROGRAM=dynamo-operator
# BuildKit says which; a default would hide that. The program is built where the
# build runs, for where the image is to run, and never emulated.
ARG TARGETARCH
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
ENV PATH=/usr/local/bin:/usr/bin:/bin
ENV HOME=/tmp
ENV DYNAMO_CONTAINER_IMAGE=dynamo-mocker
ENTRYPOINT ["/dynamo-mocker"]

FROM image AS dynamo-profiler
LABEL org.opencontainers.image.title=dynamo-profiler
ENV PATH=/
ENTRYPOINT ["/dynamo-profiler"]

FROM image AS dynamo-planner
LABEL org.opencontainers.image.title=dynamo-planner
ENV PATH=/usr/bin:/bin
ENTRYPOINT ["/dynamo-planner"]

FROM image AS dynamo-activator
LABEL org.opencontainers.image.title=dynamo-activator
ENV PATH=/
ENTRYPOINT ["/dynamo-activator"]

FROM image AS dynamo-operator
LABEL org.opencontainers.image.title=dynamo-operator
ENV PATH=/
ENTRYPOINT ["/dynamo-operator"]
