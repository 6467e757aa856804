# For those who build with Docker; `make images` needs none and gives the same
# content: one static program, no shell, not root.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG PROGRAM=dynamo-operator
ARG LDFLAGS="-s -w"
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "$LDFLAGS" -o /out/program ./cmd/$PROGRAM

FROM scratch
COPY --from=build /out/program /program
USER 65532:65532
ENTRYPOINT ["/program"]
