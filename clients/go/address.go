// The address of the broker: the path of a unix socket. A path that is returned can be connected
// to, as far as its text shows.

package hive

import (
	"fmt"
	"os"
	"regexp"
	"strings"

	"google.golang.org/grpc/codes"
)

const (
	defaultSocket  = "/run/hive/hive.sock"
	socketVariable = "HIVE_SOCKET"
	// The field for the path in the address of a unix socket has 108 bytes, with a zero at the end.
	pathBytesMax = 107
)

var uri = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]*):(//)?(.*)$`)

// socketPath returns the path that an argument, or else the environment, names.
func socketPath(argument string) (string, error) {
	address, source := argument, "the path"
	if address == "" {
		value, isSet := os.LookupEnv(socketVariable)
		if !isSet {
			return defaultSocket, nil
		}
		address, source = value, socketVariable
	}
	path := address
	if parts := uri.FindStringSubmatch(address); parts != nil {
		path = parts[3]
		if parts[1] != "unix" || parts[2] != "" && path != "" && !strings.HasPrefix(path, "/") {
			return "", badPath("%s is %q, which is no URI of a unix socket: "+
				"use a path, or unix:PATH (./NAME for a file with a colon)", source, address)
		}
	}
	switch {
	case path == "":
		return "", badPath("%s is %q, which has no path: name the socket of an agent, such as %s",
			source, address, defaultSocket)
	case len(path) > pathBytesMax:
		return "", badPath("%s is %q with %d bytes; a socket's path has at most %d: "+
			"use a shorter one, such as a symbolic link", source, address, len(path), pathBytesMax)
	}
	return path, nil
}

func badPath(format string, values ...any) error {
	return &Error{Code: codes.InvalidArgument, Message: fmt.Sprintf(format, values...)}
}
