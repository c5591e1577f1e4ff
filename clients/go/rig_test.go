// A hive of the real hived for the tests, in a temporary directory. A test that cannot go on fails
// and does not hang; what a test started ends with it.

package hive_test

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.invalid/hive/clients/go"
	"example.invalid/hive/clients/go/hivev1"
)

// patience is how long a test waits for something that has to happen.
const patience = 60 * time.Second

const settings = `[hive]
name = "test"
[agents.ada]
[agents.bob]
parent = "ada"
[broker.limits]
retry_backoff_base_ms = 20
retry_backoff_max_ms = 40
`

type rig struct {
	t      *testing.T
	dir    string
	broker *exec.Cmd
	log    bytes.Buffer
}

// newRig returns a hive of ada and bob with a running broker.
func newRig(t *testing.T) *rig {
	t.Helper()
	r := stoppedRig(t)
	r.start()
	return r
}

func stoppedRig(t *testing.T) *rig {
	t.Helper()
	if os.Getenv("HIVE_TEST_BIN_DIR") == "" {
		t.Fatal("HIVE_TEST_BIN_DIR is not set: set it to the directory of the built hived")
	}
	dir, err := os.MkdirTemp("", "hive-go") // t.TempDir is too long for a socket
	check(t, err)
	r := &rig{t: t, dir: dir}
	check(t, os.WriteFile(filepath.Join(dir, "hive.toml"), []byte(settings), 0o600))
	check(t, os.MkdirAll(filepath.Join(dir, "state"), 0o700))
	t.Cleanup(func() {
		if r.broker != nil {
			r.kill()
		}
		if t.Failed() {
			t.Log(r.log.String())
		}
		os.RemoveAll(dir)
	})
	return r
}

// start starts the broker and waits until it is ready.
func (r *rig) start() {
	r.t.Helper()
	notify := filepath.Join(r.dir, "notify")
	os.Remove(notify)
	ready, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: notify, Net: "unixgram"})
	check(r.t, err)
	defer ready.Close()
	r.broker = exec.Command(filepath.Join(os.Getenv("HIVE_TEST_BIN_DIR"), "hived"),
		"--config", filepath.Join(r.dir, "hive.toml"),
		"--state-dir", filepath.Join(r.dir, "state"), "--runtime-dir", filepath.Join(r.dir, "run"))
	r.broker.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + r.dir, "NOTIFY_SOCKET=" + notify}
	r.broker.Stdout, r.broker.Stderr = &r.log, &r.log
	check(r.t, r.broker.Start())
	check(r.t, ready.SetReadDeadline(time.Now().Add(patience)))
	word := make([]byte, 512)
	for {
		n, err := ready.Read(word)
		check(r.t, err)
		if strings.HasPrefix(string(word[:n]), "READY=1") {
			return
		}
	}
}

// kill kills the broker without warning.
func (r *rig) kill() {
	r.broker.Process.Kill()
	r.broker.Wait()
	r.broker = nil
}

// stop lets the broker drain.
func (r *rig) stop() {
	r.broker.Process.Signal(os.Interrupt)
	r.broker.Wait()
	r.broker = nil
}

func (r *rig) socket(agent string) string {
	return filepath.Join(r.dir, "run", "agents", agent, "hive.sock")
}

// connect returns the Hive of an agent, or of the operator.
func (r *rig) connect(agent string) *hive.Hive {
	r.t.Helper()
	socket := r.socket(agent)
	if agent == "operator" {
		socket = filepath.Join(r.dir, "run", "hived.sock")
	}
	h, err := hive.Connect(socket, &hive.Options{Program: "test", Timeout: patience})
	check(r.t, err)
	r.t.Cleanup(func() { h.Close() })
	return h
}

// state returns the state of a delivery, as the operator sees it.
func (r *rig) state(agent string, message uint64) hivev1.DeliveryState {
	r.t.Helper()
	inbox := hivev1.NewInboxServiceClient(r.connect("operator"))
	listed, err := inbox.ListDeliveries(soon(r.t), &hivev1.ListDeliveriesRequest{
		Agent: agent,
		States: []hivev1.DeliveryState{
			hivev1.DeliveryState_DELIVERY_STATE_READY, hivev1.DeliveryState_DELIVERY_STATE_LEASED,
			hivev1.DeliveryState_DELIVERY_STATE_DEAD, hivev1.DeliveryState_DELIVERY_STATE_ACKED,
		},
	})
	check(r.t, err)
	for _, delivery := range listed.GetDeliveries() {
		if delivery.GetMessage().GetId() == message {
			return delivery.GetState()
		}
	}
	return hivev1.DeliveryState_DELIVERY_STATE_UNSPECIFIED
}

// soon returns the context of something that has to happen.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal[T comparable](t *testing.T, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("got %v, want %v", got, want)
	}
}
