// The streams below a Mail, one after the other. Settlements are sent in order, in one step at a
// time; those without a result are sent again on the next stream.

package hive

import (
	"context"
	"io"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"example.invalid/hive/clients/go/hivev1"
)

const (
	settlementsMax = 256 // of one step
	// The broker takes 512 KiB in one step, which is less than 256 long errors.
	stepBytesMax  = 256 << 10
	errorBytesMax = 4096
)

// settlement is a decision about a delivery, on its way to the broker.
type settlement struct {
	delivery *Delivery
	wire     *hivev1.Settlement
	sent     bool // on this or an earlier stream, so it may have been committed
	state    hivev1.DeliveryState
	err      error
	done     chan struct{} // closed when state and err are set
}

func (s *settlement) resolve(state hivev1.DeliveryState, err error) {
	s.state, s.err = state, err
	close(s.done)
}

// session is one stream, from its opening to its end.
func (m *Mail) session(ctx context.Context, alive func()) error {
	stream, err := hivev1.NewInboxServiceClient(m.hive).StreamDeliveries(ctx)
	if err != nil {
		return m.broken(err)
	}
	halfClosed := make(chan bool, 1)
	go func() { halfClosed <- m.write(stream) }()
	listed := map[string]bool{}
	for {
		step, err := stream.Recv()
		if err != nil {
			if <-halfClosed && err == io.EOF { // the error has ended the writer, too
				return nil
			}
			return m.broken(err)
		}
		m.take(step, listed, alive)
	}
}

// broken prepares for the next stream. It returns nil if there is no need for one.
func (m *Mail) broken(err error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sent, m.opened, m.pings = 0, false, 0
	if m.end != nil && m.isIdle() {
		return nil
	}
	return err
}

// write sends what there is to send, until the stream ends. It returns whether it has closed our
// side.
func (m *Mail) write(stream hivev1.InboxService_StreamDeliveriesClient) bool {
	open := &hivev1.StreamDeliveriesRequest_Open{Open: m.opening}
	if stream.Send(&hivev1.StreamDeliveriesRequest{Step: open}) != nil {
		return false // the reader gets the error
	}
	for {
		m.mu.Lock()
		request, changed := m.nextRequest(), m.changed
		isLast := request == nil && m.end != nil && m.opened && m.sent == 0 && m.handlers == 0
		m.mu.Unlock()
		if isLast {
			return stream.CloseSend() == nil
		}
		if request != nil {
			if stream.Send(request) != nil {
				return false
			}
			continue
		}
		select {
		case <-changed:
		case <-stream.Context().Done():
			return false
		}
	}
}

// nextRequest returns what is to be sent now; nil if it is nothing.
func (m *Mail) nextRequest() *hivev1.StreamDeliveriesRequest {
	if m.pings > 0 {
		m.pings--
		pong := &hivev1.StreamDeliveriesRequest_Pong{Pong: &hivev1.Pong{}}
		return &hivev1.StreamDeliveriesRequest{Step: pong}
	}
	if !m.opened || m.sent > 0 || len(m.settling) == 0 {
		return nil
	}
	step := &hivev1.SettleDeliveriesRequest{}
	bytes := 0
	for _, settlement := range m.settling[:min(len(m.settling), settlementsMax)] {
		if bytes += proto.Size(settlement.wire); bytes > stepBytesMax {
			break
		}
		settlement.sent = true
		step.Settlements = append(step.Settlements, settlement.wire)
	}
	m.sent = len(step.Settlements)
	settle := &hivev1.StreamDeliveriesRequest_Settle{Settle: step}
	return &hivev1.StreamDeliveriesRequest{Step: settle}
}

// take applies a step of the broker. listed collects the tokens of the opening.
func (m *Mail) take(step *hivev1.StreamDeliveriesResponse, listed map[string]bool, alive func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch step := step.GetStep().(type) {
	case *hivev1.StreamDeliveriesResponse_Opened:
		m.hold(step.Opened.GetDeliveries())
		for _, lease := range step.Opened.GetDeliveries() {
			listed[lease.GetLeaseToken()] = true
		}
		if step.Opened.GetComplete() {
			m.reconcile(listed)
			m.opened = true
			alive()
		}
	case *hivev1.StreamDeliveriesResponse_Leased:
		m.hold(step.Leased.GetDeliveries())
	case *hivev1.StreamDeliveriesResponse_Settled:
		m.settle(step.Settled.GetResults())
	case *hivev1.StreamDeliveriesResponse_Ping:
		m.pings++
	}
	m.change()
}

// hold keeps the leases that are new, and queues them to be handed out.
func (m *Mail) hold(leases []*hivev1.LeasedDelivery) {
	for _, lease := range leases {
		token := lease.GetLeaseToken()
		if m.held[token] != nil {
			continue
		}
		delivery := newDelivery(m, lease)
		m.held[token] = delivery
		if m.end != nil {
			delivery.lose(errMailClosed())
		} else {
			m.queue = append(m.queue, delivery)
		}
	}
}

// reconcile drops what is held and was not listed. A settlement that was sent before may be the
// cause, so its result decides.
func (m *Mail) reconcile(listed map[string]bool) {
	isLost := func(delivery *Delivery) bool { return m.held[delivery.Token] == nil }
	for token, delivery := range m.held {
		if !listed[token] && (delivery.settlement == nil || !delivery.settlement.sent) {
			delete(m.held, token)
			delivery.lose(errLeaseLost(delivery))
		}
	}
	m.queue = slices.DeleteFunc(m.queue, isLost)
	m.settling = slices.DeleteFunc(m.settling, func(settlement *settlement) bool {
		if !isLost(settlement.delivery) {
			return false
		}
		settlement.resolve(0, errLeaseLost(settlement.delivery))
		return true
	})
}

// settle gives the oldest settlements their results.
func (m *Mail) settle(results []*hivev1.SettlementResult) {
	for _, result := range results[:min(len(results), m.sent)] {
		settlement := m.settling[0]
		m.settling = m.settling[1:]
		m.sent--
		delete(m.held, settlement.delivery.Token)
		switch result := result.GetResult().(type) {
		case *hivev1.SettlementResult_State:
			settlement.resolve(result.State, nil)
		case *hivev1.SettlementResult_Refusal:
			err := fromRefusal(result.Refusal)
			settlement.delivery.lose(err)
			settlement.resolve(0, err)
		default:
			settlement.resolve(0, &Error{
				Code:    codes.Unknown,
				Message: "the result of the settlement is of an unknown kind: update this kit",
			})
		}
	}
}
