package hive

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"example.invalid/hive/clients/go/hivev1"
)

func refused(reason, domain string) error {
	s, _ := status.New(codes.Unavailable, "a sentence").WithDetails(
		&errdetails.ErrorInfo{Reason: reason, Domain: domain, Metadata: map[string]string{"k": "v"}},
		&errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{
			{Field: "body", Description: "it is empty"},
		}},
		&errdetails.RetryInfo{RetryDelay: durationpb.New(1500 * time.Millisecond)},
	)
	return s.Err()
}

func TestAStatusHasAllDetails(t *testing.T) {
	wrapped := fmt.Errorf("sending: %w", FromError(refused("STARTING", "hive")))
	var e *Error
	if !errors.As(wrapped, &e) {
		t.Fatal(wrapped)
	}
	if e.Reason != "STARTING" || e.Metadata["k"] != "v" || e.RetryAfter != 1500*time.Millisecond ||
		e.Fields[0].Field != "body" || e.Fields[0].Description != "it is empty" ||
		e.Code != codes.Unavailable {
		t.Errorf("%+v", e)
	}
	if text := e.Error(); text != "hive: UNAVAILABLE STARTING: a sentence" {
		t.Error(text)
	}
	if status.Code(e) != codes.Unavailable {
		t.Error(status.Code(e))
	}
}

func TestTheReasonDecidesAboutARepeat(t *testing.T) {
	for reason, want := range map[string]bool{
		"STARTING": true, "CALL_LIMIT": true, "DRAINING": true, "INBOX_FULL": false,
		"FIELD_INVALID": false, "MADE_UP_LATER": false, "UNSPECIFIED": false,
	} {
		if got := FromError(refused(reason, "hive")).repeats(); got != want {
			t.Errorf("%s: %v", reason, got)
		}
	}
	if e := FromError(refused("QUOTA", "example.com")); e.Reason != "" || !e.repeats() {
		t.Errorf("the reason of another domain decided: %+v", e)
	}
	for code, want := range map[codes.Code]bool{
		codes.Unavailable: true, codes.DeadlineExceeded: true, codes.Unimplemented: false,
		codes.Internal: false, codes.ResourceExhausted: false, codes.Canceled: false,
	} {
		e := FromError(status.Error(code, "of the transport"))
		if e.repeats() != want {
			t.Errorf("%s: %v", code, e.repeats())
		}
		if e.broken = true; !e.repeats() {
			t.Errorf("%s of a connection that broke", code)
		}
	}
}

func TestARefusalIsAnErrorLikeAStatus(t *testing.T) {
	e := fromRefusal(&hivev1.Refusal{
		Reason:     hivev1.Reason_REASON_LEASE_LOST,
		Message:    "it is gone",
		Metadata:   map[string]string{"k": "v"},
		RetryDelay: durationpb.New(time.Second),
	})
	if e.Code != codes.FailedPrecondition || e.Reason != "LEASE_LOST" || e.Metadata["k"] != "v" ||
		e.RetryAfter != time.Second || !strings.Contains(e.Error(), "it is gone") {
		t.Errorf("%+v", e)
	}
	if e := fromRefusal(&hivev1.Refusal{Reason: 9999}); e.Reason != "9999" || e.repeats() {
		t.Errorf("%+v", e)
	}
	if e := fromRefusal(nil); e.Code != codes.Unknown {
		t.Errorf("%+v", e)
	}
}

func TestPausesGrowAndFollowTheBroker(t *testing.T) {
	var own pauses
	for _, longest := range []time.Duration{50, 100, 200, 400, 800, 1600, 3200, 5000, 5000} {
		longest *= time.Millisecond
		if got := own.next(0); got < longest/2 || got > longest {
			t.Errorf("%v for %v", got, longest)
		}
	}
	if got := own.next(time.Second); got < time.Second || got > 1250*time.Millisecond {
		t.Error(got)
	}
}

func TestTheTextOfANackFitsTheContract(t *testing.T) {
	if got := shortened("bad \xff byte"); got != "bad \uFFFD byte" {
		t.Errorf("%q", got)
	}
	long := shortened(strings.Repeat("x", 4095) + "ü")
	if len(long) != 4095 {
		t.Error(len(long))
	}
}
