// A broker of the test's own on a unix socket, for answers that a real one gives rarely.

package hive_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"example.invalid/hive/clients/go"
	"example.invalid/hive/clients/go/hivev1"
)

type fake struct {
	hivev1.UnimplementedServerInfoServiceServer
	hivev1.UnimplementedMessageServiceServer
	hivev1.UnimplementedInboxServiceServer

	t      *testing.T
	socket string
	server *grpc.Server
	send   func(*fake, *hivev1.SendMessageRequest) error
	stream func(*fake, hivev1.InboxService_StreamDeliveriesServer) error

	mu    sync.Mutex
	calls []string // GetServerInfo, and the request ids of sends
	md    metadata.MD
	conns []net.Conn
}

// listener keeps the connections that it accepts.
type listener struct {
	net.Listener
	fake *fake
}

func (l listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		l.fake.mu.Lock()
		l.fake.conns = append(l.fake.conns, conn)
		l.fake.mu.Unlock()
	}
	return conn, err
}

func newFake(t *testing.T) *fake {
	dir, err := os.MkdirTemp("", "hive-go")
	check(t, err)
	f := &fake{t: t, socket: filepath.Join(dir, "hive.sock")}
	f.serve()
	t.Cleanup(func() {
		f.server.Stop()
		os.RemoveAll(dir)
	})
	return f
}

func (f *fake) serve() {
	os.Remove(f.socket)
	socket, err := net.Listen("unix", f.socket)
	check(f.t, err)
	socket.(*net.UnixListener).SetUnlinkOnClose(false) // it may be closed when the next one is there
	f.server = grpc.NewServer()
	hivev1.RegisterServerInfoServiceServer(f.server, f)
	hivev1.RegisterMessageServiceServer(f.server, f)
	hivev1.RegisterInboxServiceServer(f.server, f)
	go f.server.Serve(listener{socket, f})
}

// cut breaks all connections.
func (f *fake) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, conn := range f.conns {
		conn.Close()
	}
	f.conns = nil
}

func (f *fake) note(ctx context.Context, call string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, call)
	f.md, _ = metadata.FromIncomingContext(ctx)
}

func (f *fake) noted() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string{}, f.calls...)
}

func (f *fake) GetServerInfo(ctx context.Context, request *hivev1.GetServerInfoRequest) (
	*hivev1.GetServerInfoResponse, error,
) {
	f.note(ctx, "hello of "+request.GetClientName())
	return &hivev1.GetServerInfoResponse{
		Version: "fake", Capabilities: &hivev1.Capabilities{Search: true},
	}, nil
}

func (f *fake) SendMessage(ctx context.Context, request *hivev1.SendMessageRequest) (
	*hivev1.SendMessageResponse, error,
) {
	f.note(ctx, request.GetRequestId())
	if err := f.send(f, request); err != nil {
		return nil, err
	}
	return &hivev1.SendMessageResponse{MessageId: 7}, nil
}

func (f *fake) StreamDeliveries(stream hivev1.InboxService_StreamDeliveriesServer) error {
	if f.stream == nil {
		return status.Error(codes.Unimplemented, "no streams")
	}
	return f.stream(f, stream)
}

func (f *fake) connect(options *hive.Options) *hive.Hive {
	h, err := hive.Connect(f.socket, options)
	check(f.t, err)
	f.t.Cleanup(func() { h.Close() })
	return h
}
