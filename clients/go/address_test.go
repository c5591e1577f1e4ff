package hive

import (
	"os"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
)

func TestThePathOfASocketHasSeveralForms(t *testing.T) {
	long := "/" + strings.Repeat("x", 106)
	for address, want := range map[string]string{
		"/run/x.sock":        "/run/x.sock",
		"x.sock":             "x.sock",
		"./a:b":              "./a:b",
		"unix:/run/x.sock":   "/run/x.sock",
		"unix:x.sock":        "x.sock",
		"unix:///run/x.sock": "/run/x.sock",
		long:                 long,
	} {
		if got, err := socketPath(address); err != nil || got != want {
			t.Errorf("%q is %q, %v", address, got, err)
		}
	}
}

func TestAPathThatCannotBeASocketIsAnError(t *testing.T) {
	for _, address := range []string{
		"unix:", "unix://", "unix://host/x.sock", "http://localhost", "tcp:1", "unix-abstract:x",
		"/" + strings.Repeat("x", 107), "unix:/" + strings.Repeat("x", 107),
	} {
		_, err := Connect(address, nil)
		if err == nil || FromError(err).Code != codes.InvalidArgument {
			t.Errorf("%q: %v", address, err)
		} else if !strings.Contains(err.Error(), address) {
			t.Errorf("the error does not name %q: %v", address, err)
		}
	}
}

func TestTheEnvironmentNamesTheSocket(t *testing.T) {
	t.Setenv(socketVariable, "unix:/run/y.sock")
	if path, err := socketPath(""); err != nil || path != "/run/y.sock" {
		t.Error(path, err)
	}
	t.Setenv(socketVariable, "")
	if _, err := socketPath(""); err == nil {
		t.Error("an empty variable is no path")
	}
	os.Unsetenv(socketVariable)
	if path, err := socketPath(""); err != nil || path != defaultSocket {
		t.Error(path, err)
	}
}
