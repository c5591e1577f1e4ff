package hive_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"example.invalid/hive/clients/go"
	"example.invalid/hive/clients/go/hivev1"
)

func refusal(code codes.Code, reason string, delay time.Duration) error {
	s, _ := status.New(code, "refused").WithDetails(
		&errdetails.ErrorInfo{Reason: reason, Domain: "hive"},
		&errdetails.RetryInfo{RetryDelay: durationpb.New(delay)})
	return s.Err()
}

// script answers each send with the next error.
func script(errs ...error) func(*fake, *hivev1.SendMessageRequest) error {
	return func(*fake, *hivev1.SendMessageRequest) error {
		err := errs[0]
		errs = errs[1:]
		return err
	}
}

func TestAnIdenticalRequestIsRepeatedAsTheReasonSays(t *testing.T) {
	f := newFake(t)
	const pause = 120 * time.Millisecond
	f.send = script(refusal(codes.ResourceExhausted, "CALL_LIMIT", pause),
		status.Error(codes.Unavailable, "of the transport"), nil)
	request := &hivev1.SendMessageRequest{Body: "x"}
	begin := time.Now()
	_, err := hivev1.NewMessageServiceClient(f.connect(nil)).SendMessage(soon(t), request)
	check(t, err)
	if time.Since(begin) < pause {
		t.Error("the pause of the broker was not kept")
	}
	calls := f.noted()
	equal(t, len(calls), 4)
	equal(t, calls[0], "hello of hive-go")
	equal(t, calls[1], calls[2])
	equal(t, calls[2], calls[3])
	equal(t, request.GetRequestId(), "")
	if id := strings.Split(calls[1], "-"); len(id) != 2 || len(id[0]) != 12 {
		t.Error(calls[1])
	}
}

func TestARefusalForGoodIsNotRepeated(t *testing.T) {
	for _, err := range []error{
		refusal(codes.Unavailable, "MADE_UP_LATER", 0),
		refusal(codes.ResourceExhausted, "INBOX_FULL", time.Millisecond),
		refusal(codes.InvalidArgument, "FIELD_INVALID", 0),
		status.Error(codes.Unimplemented, "no such method"),
		status.Error(codes.Internal, "a fault"),
		status.Error(codes.Canceled, "by the broker"),
	} {
		f := newFake(t)
		f.send = script(err)
		_, got := f.connect(nil).Send(soon(t), "bob", "x", &hive.SendOptions{RequestID: "mine"})
		var e *hive.Error
		if !errors.As(got, &e) || e.Code != status.Code(err) {
			t.Errorf("%v became %v", err, got)
		}
		equal(t, f.noted()[1], "mine")
	}
}

func TestTheHandshakeComesFirstOnEachConnection(t *testing.T) {
	f := newFake(t)
	f.send = func(f *fake, _ *hivev1.SendMessageRequest) error {
		if len(f.noted()) < 5 {
			f.cut()
			return status.Error(codes.Internal, "too late")
		}
		return nil
	}
	h := f.connect(&hive.Options{Program: "test"})
	_, err := h.Send(soon(t), "bob", "x", &hive.SendOptions{RequestID: "id"})
	check(t, err)
	equal(t, strings.Join(f.noted(), ","),
		"hello of test,id,hello of test,id,hello of test,id")
	for name, want := range map[string]bool{"search": true, "backups": false, "made_up": false} {
		got, err := h.Supports(soon(t), name)
		check(t, err)
		equal(t, got, want)
	}
	info, err := h.Info(soon(t))
	check(t, err)
	equal(t, info.GetVersion(), "fake")
	equal(t, len(f.noted()), 6)
}

func TestConcurrentCallsShareAHandshake(t *testing.T) {
	f := newFake(t)
	f.send = func(*fake, *hivev1.SendMessageRequest) error { return nil }
	h := f.connect(nil)
	done := make(chan error)
	for range 20 {
		go func() {
			_, err := h.Send(soon(t), "bob", "x", nil)
			done <- err
		}()
	}
	for range 20 {
		check(t, <-done)
	}
	equal(t, len(f.noted()), 21)
}

func TestTheTimeOfACallIsItsBudget(t *testing.T) {
	f := newFake(t)
	f.send = func(*fake, *hivev1.SendMessageRequest) error {
		return refusal(codes.Unavailable, "STARTING", 10*time.Millisecond)
	}
	h := f.connect(&hive.Options{Timeout: 200 * time.Millisecond})
	_, err := h.Send(context.Background(), "bob", "x", nil)
	equal(t, hive.FromError(err).Reason, "STARTING")

	// A pause that is longer than what is left is not begun.
	f = newFake(t)
	f.send = script(refusal(codes.Unavailable, "STARTING", time.Hour))
	begin := time.Now()
	_, err = f.connect(nil).Send(soon(t), "bob", "x", nil)
	equal(t, hive.FromError(err).Reason, "STARTING")
	if time.Since(begin) > patience/2 {
		t.Error("it waited")
	}
}

func TestABrokerThatIsNotThereIsNamed(t *testing.T) {
	h, err := hive.Connect("/nonexistent/hive.sock", &hive.Options{Timeout: 100 * time.Millisecond})
	check(t, err)
	defer h.Close()
	_, err = h.Send(context.Background(), "bob", "x", nil)
	e := hive.FromError(err)
	equal(t, e.Code, codes.DeadlineExceeded)
	equal(t, errors.Is(err, context.DeadlineExceeded), true)
	if !strings.Contains(e.Message, "/nonexistent/hive.sock: connect: no such file") {
		t.Error(e.Message)
	}
}

func TestACallWaitsForItsBroker(t *testing.T) {
	f := newFake(t)
	f.send = func(*fake, *hivev1.SendMessageRequest) error { return nil }
	f.server.Stop()
	h := f.connect(nil)
	done := make(chan error)
	go func() {
		_, err := h.Send(soon(t), "bob", "x", nil)
		done <- err
	}()
	f.serve()
	check(t, <-done)
}

func TestACancelEndsACallAtOnce(t *testing.T) {
	for _, answer := range []error{nil, refusal(codes.Unavailable, "STARTING", time.Hour)} {
		f := newFake(t)
		ctx, cancel := context.WithCancel(context.Background())
		held := make(chan struct{})
		f.send = func(*fake, *hivev1.SendMessageRequest) error {
			if answer == nil { // it is cancelled in the call, otherwise in the pause
				cancel()
				<-held
			} else {
				time.AfterFunc(20*time.Millisecond, cancel)
			}
			return answer
		}
		_, err := f.connect(&hive.Options{Timeout: 3 * time.Hour}).Send(ctx, "bob", "x", nil)
		close(held)
		equal(t, errors.Is(err, context.Canceled), true)
		equal(t, hive.FromError(err).Code, codes.Canceled)
	}
}

func TestAClosedHiveSaysSo(t *testing.T) {
	f := newFake(t)
	began, held := make(chan struct{}), make(chan struct{})
	defer close(held)
	f.send = func(*fake, *hivev1.SendMessageRequest) error {
		close(began)
		<-held
		return nil
	}
	h := f.connect(nil)
	done := make(chan error)
	go func() {
		_, err := h.Send(soon(t), "bob", "x", nil)
		done <- err
	}()
	<-began
	check(t, h.Close())
	check(t, h.Close())
	_, later := h.Send(soon(t), "bob", "x", nil)
	_, info := h.Info(soon(t))
	for _, err := range []error{<-done, later, info} {
		e := hive.FromError(err)
		equal(t, e.Code, codes.Canceled)
		equal(t, e.Reason, "")
		equal(t, strings.Contains(e.Message, "closed"), true)
	}
	for _, err := range h.Mail(soon(t), nil).Deliveries() {
		equal(t, hive.FromError(err).Code, codes.Canceled)
	}
	for _, err := range h.Follow(soon(t), nil) {
		equal(t, hive.FromError(err).Code, codes.Canceled)
	}
}

func TestTokensAreMetadata(t *testing.T) {
	f := newFake(t)
	f.send = func(*fake, *hivev1.SendMessageRequest) error { return nil }
	t.Setenv("HIVE_PROCESS_TOKEN", "secret")
	t.Setenv("TRACEPARENT", "trace")
	_, err := f.connect(nil).Send(soon(t), "bob", "x", nil)
	check(t, err)
	equal(t, f.md.Get("hive-process-token")[0], "secret")
	equal(t, f.md.Get("traceparent")[0], "trace")
	equal(t, f.md.Get(":authority")[0], "localhost")
	none := ""
	_, err = f.connect(&hive.Options{ProcessToken: &none, Traceparent: &none}).
		Send(soon(t), "bob", "x", nil)
	check(t, err)
	equal(t, len(f.md.Get("hive-process-token"))+len(f.md.Get("traceparent")), 0)
}
