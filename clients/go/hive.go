// Package hive is the client kit of Hive, the broker of fleets of agents.
//
// A [Hive] is the connection to the socket of one agent, or of the operator. Its verbs
// ([Hive.Send], [Hive.Ask], [Hive.Mail] and others) repeat a request until the broker answers it
// or refuses it for good, over breaks of the connection and restarts of the broker. A repeat never
// has a second effect. Types of package hivev1 are generated from the contract and used as they
// are.
//
// A Hive is a [grpc.ClientConnInterface]: each unary call of a generated client is repeated too.
//
//	topology := hivev1.NewTopologyServiceClient(h)
//
// All methods may be called by several goroutines at the same time.
package hive

import (
	"cmp"
	"context"
	"os"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/protobuf/reflect/protoreflect"

	"example.invalid/hive/clients/go/hivev1"
)

// Version is the version of this kit.
const Version = "0.1.0"

// contractRevision is the revision of the contract that this kit was written for.
const contractRevision = 1

const (
	defaultTimeout   = 30 * time.Second
	replyBytesMax    = 16 << 20
	firstReconnect   = 50 * time.Millisecond
	longestReconnect = 500 * time.Millisecond
)

// Options are the settings of a [Hive]. The zero value has the defaults.
type Options struct {
	// Program is the name of the program in the broker's log. Default: the name of this kit.
	Program string
	// Version is the version of the program. Default: that of this kit.
	Version string
	// Timeout is the time for a call whose context has no deadline, repeats included.
	// Default: 30 s.
	Timeout time.Duration
	// ProcessToken is the secret of the claude process that the calls belong to; empty for none.
	// Default: the environment variable HIVE_PROCESS_TOKEN.
	ProcessToken *string
	// Traceparent is the W3C trace context of the calls; empty for none.
	// Default: the environment variable TRACEPARENT.
	Traceparent *string
}

// Hive is the connection to a broker. It connects by itself, also again after a break.
type Hive struct {
	path     string
	options  Options
	metadata map[string]string
	conn     *grpc.ClientConn
	closed   context.Context
	close    context.CancelFunc

	current   atomic.Pointer[connection] // the newest connection; nil if it has broken
	breaks    atomic.Int64               // how many connections have ended
	dialError atomic.Pointer[error]      // of the last attempt to connect; nil after a success
	greeting  chan struct{}              // held by the call that makes the handshake
}

var _ grpc.ClientConnInterface = (*Hive)(nil)

// Connect returns the connection to the socket at path: a path, or a URI such as unix:PATH. If
// path is empty it is that of the environment variable HIVE_SOCKET, and without it
// /run/hive/hive.sock.
//
// Connect does not wait for the broker: the first call does. The error is an [*Error] with the
// code INVALID_ARGUMENT if the path cannot be that of a socket.
func Connect(path string, options *Options) (*Hive, error) {
	path, err := socketPath(path)
	if err != nil {
		return nil, err
	}
	h := &Hive{path: path, options: orDefault(options), greeting: make(chan struct{}, 1)}
	h.options.Program = cmp.Or(h.options.Program, "hive-go")
	h.options.Version = cmp.Or(h.options.Version, Version)
	if h.options.Timeout <= 0 {
		h.options.Timeout = defaultTimeout
	}
	h.metadata = map[string]string{}
	h.setMetadata("hive-process-token", h.options.ProcessToken, "HIVE_PROCESS_TOKEN")
	h.setMetadata("traceparent", h.options.Traceparent, "TRACEPARENT")
	h.closed, h.close = context.WithCancel(context.Background())
	pauses := backoff.Config{
		BaseDelay:  firstReconnect,
		Multiplier: 2,
		Jitter:     0.2,
		MaxDelay:   longestReconnect,
	}
	// Dial and not NewClient, which grpc-go has only since 1.63. The dialer has the path, so that
	// no resolver and no proxy sees it; "localhost" is the authority of the calls.
	h.conn, err = grpc.Dial("passthrough:///localhost", //nolint:staticcheck
		grpc.WithContextDialer(h.dial),
		grpc.WithTransportCredentials(handshaker{h}),
		grpc.WithPerRPCCredentials(callMetadata{h}),
		grpc.WithDisableServiceConfig(),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           pauses,
			MinConnectTimeout: 5 * time.Second,
		}),
		grpc.WithDefaultCallOptions(
			grpc.WaitForReady(true),
			grpc.MaxCallRecvMsgSize(replyBytesMax),
		),
	)
	if err != nil {
		h.close()
		return nil, FromError(err)
	}
	return h, nil
}

func (h *Hive) setMetadata(key string, value *string, variable string) {
	text := os.Getenv(variable)
	if value != nil {
		text = *value
	}
	if text != "" {
		h.metadata[key] = text
	}
}

// Close ends the connection, and each call that is under way with the code CANCELLED. Close each
// [Mail] first, so that what it holds is released. A second Close does nothing.
func (h *Hive) Close() error {
	h.close()
	h.conn.Close() // its only error is that it is closed already
	return nil
}

// Info returns the broker's versions, capabilities and limits, as it stated them on the present
// connection.
func (h *Hive) Info(ctx context.Context) (*hivev1.GetServerInfoResponse, error) {
	var info *hivev1.GetServerInfoResponse
	err := h.repeat(ctx, attemptLimit, func(ctx context.Context) (err error) {
		info, err = h.greet(ctx)
		return err
	})
	return info, err
}

// Supports returns whether the broker has a capability: the name of a field of
// [hivev1.Capabilities], such as "search". A name that is not known is not supported.
func (h *Hive) Supports(ctx context.Context, capability string) (bool, error) {
	info, err := h.Info(ctx)
	if err != nil {
		return false, err
	}
	all := info.GetCapabilities().ProtoReflect()
	field := all.Descriptor().Fields().ByName(protoreflect.Name(capability))
	return field != nil && field.Kind() == protoreflect.BoolKind && all.Get(field).Bool(), nil
}

// orDefault returns what options points to, or their zero value.
func orDefault[T any](options *T) T {
	if options == nil {
		return *new(T)
	}
	return *options
}
