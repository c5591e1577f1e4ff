# shellcheck shell=bash
# Settings for Go, to be sourced in the root of the repository: the Go of .cache/python with the libraries of Debian's packages, which need GOPATH
# mode. GO_KIT is the kit at the path of its module. Nothing is fetched.
GO_KIT=$PWD/.cache/gopath/src/example.invalid/hive/clients/go
mkdir -p "$(dirname "$GO_KIT")"
ln -sfn "$PWD/clients/go" "$GO_KIT"
export PATH=$PWD/.cache/python/bin:$PATH
export GO111MODULE=off GOPATH=$PWD/.cache/gopath:/usr/share/gocode GOCACHE=$PWD/.cache/go GOTOOLCHAIN=local GOFLAGS=-trimpath CGO_ENABLED=0
