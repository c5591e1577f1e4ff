// Streams of a broker of the test's own: what a real one does only in a rare moment.

package hive_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"example.invalid/hive/clients/go"
	"example.invalid/hive/clients/go/hivev1"
)

type server = hivev1.InboxService_StreamDeliveriesServer

// session is one stream, as the fake broker has it.
type session struct {
	server
	end chan error // ends the stream
}

// streams returns a fake broker and its streams, one after the other.
func streams(t *testing.T) (*fake, chan *session) {
	f := newFake(t)
	sessions := make(chan *session)
	f.stream = func(_ *fake, stream server) error {
		s := &session{stream, make(chan error)}
		select {
		case sessions <- s:
		case <-stream.Context().Done():
			return nil
		}
		select {
		case err := <-s.end:
			return err
		case <-stream.Context().Done():
			return nil
		}
	}
	return f, sessions
}

func leased(tokens ...string) []*hivev1.LeasedDelivery {
	var leases []*hivev1.LeasedDelivery
	for _, token := range tokens {
		leases = append(leases, &hivev1.LeasedDelivery{
			LeaseToken: token,
			Delivery:   &hivev1.Delivery{Message: &hivev1.Message{Body: token}, Attempt: 1},
		})
	}
	return leases
}

// open reads the opening and lists leases in two parts.
func (s *session) open(t *testing.T, tokens ...string) *hivev1.OpenDeliveries {
	t.Helper()
	first, err := s.Recv()
	check(t, err)
	for _, complete := range []bool{false, true} {
		opened := &hivev1.DeliveriesOpened{Deliveries: leased(tokens...), Complete: complete}
		tokens = nil
		s.push(t, &hivev1.StreamDeliveriesResponse{
			Step: &hivev1.StreamDeliveriesResponse_Opened{Opened: opened},
		})
	}
	return first.GetOpen()
}

func (s *session) push(t *testing.T, step *hivev1.StreamDeliveriesResponse) {
	t.Helper()
	check(t, s.Send(step))
}

// settlements reads one step of settlements, as "ack a,release b".
func (s *session) settlements(t *testing.T) string {
	t.Helper()
	request, err := s.Recv()
	check(t, err)
	var all []string
	for _, settlement := range request.GetSettle().GetSettlements() {
		kind := "ack"
		if settlement.GetRelease() != nil {
			kind = "release"
		}
		all = append(all, kind+" "+settlement.GetLeaseToken())
	}
	return strings.Join(all, ",")
}

func (s *session) results(t *testing.T, results ...*hivev1.SettlementResult) {
	t.Helper()
	s.push(t, &hivev1.StreamDeliveriesResponse{Step: &hivev1.StreamDeliveriesResponse_Settled{
		Settled: &hivev1.SettleDeliveriesResponse{Results: results},
	}})
}

var (
	done = &hivev1.SettlementResult{Result: &hivev1.SettlementResult_State{State: acked}}
	gone = &hivev1.SettlementResult{Result: &hivev1.SettlementResult_Refusal{
		Refusal: &hivev1.Refusal{Reason: hivev1.Reason_REASON_LEASE_LOST, Message: "gone"},
	}}
)

// ack acks in the background.
func ack(t *testing.T, delivery *hive.Delivery) chan error {
	result := make(chan error, 1)
	go func() {
		_, err := delivery.Ack(soon(t))
		result <- err
	}()
	return result
}

func lostOf(err error) bool { return err != nil && hive.FromError(err).Reason == "LEASE_LOST" }

func TestAReopenedStreamKeepsWhatIsListed(t *testing.T) {
	f, sessions := streams(t)
	mail := f.connect(nil).Mail(soon(t), &hive.MailOptions{StreamID: "mine", Window: 9})
	s := <-sessions
	opening := s.open(t, "listed", "unlisted", "sent-unlisted", "sent-listed", "queued")
	equal(t, opening.GetStreamId(), "mine")
	equal(t, opening.GetWindow().GetDeliveries(), 9)
	listed, unlisted := next(t, mail), next(t, mail)
	sentUnlisted, sentListed := next(t, mail), next(t, mail)
	first := ack(t, sentUnlisted)
	equal(t, s.settlements(t), "ack sent-unlisted")
	second := ack(t, sentListed) // waits for the result of the first
	s.end <- status.Error(codes.Internal, "no reason of hive")

	s = <-sessions
	s.open(t, "listed", "sent-listed", "new")
	<-unlisted.Context().Done()
	equal(t, lostOf(context.Cause(unlisted.Context())), true)
	_, err := unlisted.Ack(soon(t))
	equal(t, lostOf(err), true)
	check(t, listed.Context().Err())
	equal(t, next(t, mail).Token, "new") // and neither "queued" nor "listed"
	if got := s.settlements(t); got == "ack sent-unlisted" {
		equal(t, s.settlements(t), "ack sent-listed") // it was not pending yet
	} else {
		equal(t, got, "ack sent-unlisted,ack sent-listed")
	}
	s.results(t, gone, done)
	equal(t, lostOf(<-first), true)
	<-sentUnlisted.Context().Done()
	check(t, <-second)

	s.push(t, &hivev1.StreamDeliveriesResponse{
		Step: &hivev1.StreamDeliveriesResponse_Ping{Ping: &hivev1.Ping{}},
	})
	pong, err := s.Recv()
	check(t, err)
	equal(t, pong.GetPong() != nil, true)

	third := ack(t, listed)
	equal(t, s.settlements(t), "ack listed")
	s.results(t, &hivev1.SettlementResult{}) // a kind of result that is not known
	equal(t, hive.FromError(<-third).Code, codes.Unknown)

	closed := make(chan error)
	go func() { closed <- mail.Close() }()
	_, err = s.Recv()
	equal(t, err, io.EOF)
	s.end <- nil
	check(t, <-closed)
}

func TestSettlementsGoTogether(t *testing.T) {
	f, sessions := streams(t)
	mail := f.connect(nil).Mail(soon(t), &hive.MailOptions{Window: 256})
	s := <-sessions
	var tokens []string
	for n := range 256 {
		tokens = append(tokens, fmt.Sprint(n))
	}
	s.open(t, tokens...)
	results := []chan error{ack(t, next(t, mail))}
	equal(t, s.settlements(t), "ack 0")
	for range 255 {
		results = append(results, ack(t, next(t, mail)))
	}
	s.results(t, done)
	for sent := 1; sent < 256; {
		count := len(strings.Split(s.settlements(t), ","))
		sent += count
		var all []*hivev1.SettlementResult
		for range count {
			all = append(all, done)
		}
		s.results(t, all...)
	}
	for _, result := range results {
		check(t, <-result)
	}
	go mail.Close()
	_, err := s.Recv()
	equal(t, err, io.EOF)
	s.end <- nil
}

func TestTheReasonDecidesWhetherAStreamIsReopened(t *testing.T) {
	f, sessions := streams(t)
	for _, reason := range []string{"STREAM_SILENT", "DRAINING", ""} {
		mail := f.connect(nil).Mail(soon(t), nil)
		for _, err := range []error{refusal(codes.Aborted, reason, 0), nil} {
			s := <-sessions
			s.open(t)
			s.end <- err // nil: the broker ended it without an error
		}
		(<-sessions).open(t, "x")
		equal(t, next(t, mail).Token, "x")
		f.cut()
		(<-sessions).end <- refusal(codes.NotFound, "AGENT_RETIRED", 0)
		_, err := mail.Next(soon(t))
		equal(t, hive.FromError(err).Reason, "AGENT_RETIRED")
		check(t, mail.Close())
	}
	for _, reason := range []string{"CAPABILITY_MISSING", "HARNESS_ATTACHED", "MADE_UP_LATER"} {
		mail := f.connect(nil).Mail(soon(t), nil)
		s := <-sessions
		s.open(t, "x", "y")
		held := next(t, mail)
		result := ack(t, next(t, mail))
		equal(t, s.settlements(t), "ack y")
		s.end <- refusal(codes.Aborted, reason, 0)
		_, err := mail.Next(soon(t))
		equal(t, hive.FromError(err).Reason, reason)
		equal(t, hive.FromError(<-result).Reason, reason)
		<-held.Context().Done()
		check(t, mail.Close())
	}
	f.stream = nil
	for _, err := range f.connect(nil).Mail(soon(t), nil).Deliveries() {
		equal(t, hive.FromError(err).Code, codes.Unimplemented)
	}
}

func TestNothingIsLeftAfterTheClose(t *testing.T) {
	f, sessions := streams(t)
	h := f.connect(nil)
	mail := h.Mail(soon(t), nil)
	s := <-sessions
	s.open(t, "x", "y")
	finished := make(chan error)
	go func() {
		finished <- mail.Each(func(ctx context.Context, _ *hive.Delivery) error {
			<-ctx.Done()
			return ctx.Err()
		})
	}()
	closed := make(chan error)
	go func() { closed <- mail.Close() }()
	_, err := s.Recv()
	equal(t, err, io.EOF)
	s.end <- nil
	check(t, <-closed)
	check(t, <-finished)
	check(t, h.Close())
	ctx := soon(t)
	for left := ours(); len(left) > 0; left = ours() { // one may be at its last instruction
		if ctx.Err() != nil {
			t.Fatal(left)
		}
		runtime.Gosched()
	}
}

// ours returns the stacks of the goroutines of mails and connections.
func ours() []string {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	var left []string
	for _, stack := range strings.Split(string(stacks), "\n\n") {
		if strings.Contains(stack, "go.(*Mail)") || strings.Contains(stack, "go.(*Hive)") {
			left = append(left, stack)
		}
	}
	return left
}

func TestAHiveThatIsClosedEndsItsMail(t *testing.T) {
	f, sessions := streams(t)
	h := f.connect(nil)
	mail := h.Mail(soon(t), nil)
	s := <-sessions
	s.open(t, "x")
	held := next(t, mail)
	check(t, h.Close())
	_, err := mail.Next(soon(t))
	var e *hive.Error
	equal(t, errors.As(err, &e) && e.Code == codes.Canceled && e.Reason == "", true)
	<-held.Context().Done()
	check(t, mail.Close())
}

func TestAStreamThatIsNotAnsweredIsOpenedAgain(t *testing.T) {
	t.Parallel() // it takes the 10 s of an attempt
	f, sessions := streams(t)
	mail := f.connect(nil).Mail(soon(t), nil)
	<-sessions
	(<-sessions).open(t, "x")
	equal(t, next(t, mail).Token, "x")
}

func TestEachNeedsAHandler(t *testing.T) {
	err := new(hive.Mail).Each(nil)
	if e := hive.FromError(err); e.Code != codes.InvalidArgument {
		t.Fatal(err)
	}
}
