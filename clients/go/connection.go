// Connections and their handshakes. No call but GetServerInfo is made on a connection before its
// handshake has been answered, also if the connection broke a moment ago.

package hive

import (
	"context"
	"errors"
	"net"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"example.invalid/hive/clients/go/hivev1"
)

const handshakeMethod = "/hive.v1.ServerInfoService/GetServerInfo"

// connection is a connection of the channel. It is its own AuthInfo, because gRPC shows that to
// each call that is made on it.
type connection struct {
	net.Conn
	credentials.CommonAuthInfo
	hive *Hive
	info atomic.Pointer[hivev1.GetServerInfoResponse] // nil before the handshake
	ends atomic.Bool
}

func (c *connection) AuthType() string { return "unix" }

func (c *connection) Close() error {
	if c.ends.CompareAndSwap(false, true) {
		c.hive.current.CompareAndSwap(c, nil)
		c.hive.breaks.Add(1)
	}
	return c.Conn.Close()
}

func (h *Hive) dial(ctx context.Context, _ string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", h.path)
	if err != nil {
		h.dialError.Store(&err)
		return nil, err
	}
	h.dialError.Store(nil)
	return conn, nil
}

// handshaker notices each new connection. It changes nothing of it: the kernel identifies both
// ends of a unix socket.
type handshaker struct{ hive *Hive }

func (s handshaker) ClientHandshake(_ context.Context, _ string, conn net.Conn) (
	net.Conn, credentials.AuthInfo, error,
) {
	c := &connection{Conn: conn, hive: s.hive}
	c.SecurityLevel = credentials.PrivacyAndIntegrity
	s.hive.current.Store(c)
	return c, c, nil
}

func (s handshaker) ServerHandshake(net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("this is the side of a client")
}

func (s handshaker) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "unix", ServerName: "localhost"}
}

func (s handshaker) Clone() credentials.TransportCredentials { return s }

func (s handshaker) OverrideServerName(string) error { return nil }

// callMetadata gives each call the metadata of the Hive, and refuses calls on a connection without
// a handshake. Such a call is repeated like one whose connection broke.
type callMetadata struct{ hive *Hive }

func (m callMetadata) GetRequestMetadata(ctx context.Context, _ ...string) (
	map[string]string, error,
) {
	request, _ := credentials.RequestInfoFromContext(ctx)
	c, ok := request.AuthInfo.(*connection)
	if ok && c.info.Load() == nil && request.Method != handshakeMethod {
		m.hive.current.Store(c) // the next attempt makes its handshake
		return nil, status.Error(codes.Unavailable, "the connection is new: the handshake is next")
	}
	return m.hive.metadata, nil
}

func (m callMetadata) RequireTransportSecurity() bool { return false }

// greet makes the handshake of the present connection, unless it was made, and returns its answer.
// Concurrent calls share one.
func (h *Hive) greet(ctx context.Context) (*hivev1.GetServerInfoResponse, error) {
	if h.closed.Err() != nil {
		return nil, errClosed()
	}
	if info := h.current.Load().greeted(); info != nil {
		return info, nil
	}
	select {
	case h.greeting <- struct{}{}:
		defer func() { <-h.greeting }()
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	case <-h.closed.Done():
		return nil, errClosed()
	}
	if info := h.current.Load().greeted(); info != nil {
		return info, nil // another call made it
	}
	var server peer.Peer
	info, err := hivev1.NewServerInfoServiceClient(h.conn).GetServerInfo(ctx,
		&hivev1.GetServerInfoRequest{
			ClientName:       h.options.Program,
			ClientVersion:    h.options.Version,
			ContractRevision: contractRevision,
		}, grpc.Peer(&server))
	if err != nil {
		return nil, err
	}
	if c, ok := server.AuthInfo.(*connection); ok {
		c.info.Store(info)
	}
	return info, nil
}

func (c *connection) greeted() *hivev1.GetServerInfoResponse {
	if c == nil {
		return nil
	}
	return c.info.Load()
}
