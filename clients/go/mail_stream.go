// The streams below a Mail, one after the other. Settlements are sent in order, in one step at a
// time; those without a result are sent again on the next stream.

package hive

import (
	"context"
	"io"
	"sync"

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
	repeated bool // it was sent on an earlier stream, so it may have been committed
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
	var writer sync.WaitGroup
	writer.Add(1)
	halfClosed := false
	go func() {
		defer writer.Done()
		halfClosed = m.write(stream)
	}()
	listed := map[string]bool{}
	for {
		step, err := stream.Recv() // an error ends the writer, too
		if err != nil {
			writer.Wait()
			if err == io.EOF && halfClosed {
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
	for _, settlement := range m.sent {
		settlement.repeated = true
	}
	m.pending = append(m.sent, m.pending...)
	m.sent, m.opened, m.pings = nil, false, 0
	if m.closing && m.isIdle() {
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
		isLast := request == nil && m.closing && m.opened && len(m.sent) == 0 && m.handlers == 0
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
	if !m.opened || len(m.sent) > 0 || len(m.pending) == 0 {
		return nil
	}
	step := &hivev1.SettleDeliveriesRequest{}
	bytes := 0
	for _, settlement := range m.pending[:min(len(m.pending), settlementsMax)] {
		if bytes += proto.Size(settlement.wire); bytes > stepBytesMax {
			break
		}
		step.Settlements = append(step.Settlements, settlement.wire)
	}
	count := len(step.Settlements)
	m.sent, m.pending = m.pending[:count:count], m.pending[count:]
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
		if m.closing {
			delivery.lose(errMailClosed())
		} else {
			m.queue = append(m.queue, delivery)
		}
	}
}

// reconcile drops what is held and was not listed. A settlement that was sent before may be the
// cause, so its result decides.
func (m *Mail) reconcile(listed map[string]bool) {
	lost := map[*Delivery]bool{}
	for token, delivery := range m.held {
		if !listed[token] && (delivery.settlement == nil || !delivery.settlement.repeated) {
			lost[delivery] = true
			delete(m.held, token)
			delivery.lose(errLeaseLost(delivery))
		}
	}
	queue, pending := m.queue, m.pending
	m.queue, m.pending = nil, nil
	for _, delivery := range queue {
		if !lost[delivery] {
			m.queue = append(m.queue, delivery)
		}
	}
	for _, settlement := range pending {
		if lost[settlement.delivery] {
			settlement.resolve(0, errLeaseLost(settlement.delivery))
		} else {
			m.pending = append(m.pending, settlement)
		}
	}
}

// settle gives the oldest settlements their results.
func (m *Mail) settle(results []*hivev1.SettlementResult) {
	for _, result := range results[:min(len(results), len(m.sent))] {
		settlement := m.sent[0]
		m.sent = m.sent[1:]
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
