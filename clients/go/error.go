// The one type of error, made here from the status of a call and from the refusal of a settlement.

package hive

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"example.invalid/hive/clients/go/hivev1"
)

// Error is why a call failed. Get it with [errors.As]. For a call that its caller cancelled
// errors.Is(err, context.Canceled) is true, and likewise for context.DeadlineExceeded.
type Error struct {
	// Code is the gRPC code.
	Code codes.Code
	// Reason is the name of the broker's reason, such as AGENT_NOT_FOUND. It may be one that this
	// kit does not know. It is empty if the error did not come from the broker.
	Reason string
	// Message is a sentence for people.
	Message string
	// Metadata has the facts that belong to the reason: names, ids, limits.
	Metadata map[string]string
	// Fields are the faults of fields of the request.
	Fields []*errdetails.BadRequest_FieldViolation
	// RetryAfter is the time after which a repeat may succeed; 0 if the broker stated none.
	RetryAfter time.Duration

	cause  error // of the context, if that ended the call
	broken bool  // whether the connection broke during the call
	ended  bool  // whether the caller, its time or the Hive ended the call
}

// Error returns code, reason and message in one line.
func (e *Error) Error() string {
	if e.Reason == "" {
		return fmt.Sprintf("hive: %s: %s", CodeName(e.Code), e.Message)
	}
	return fmt.Sprintf("hive: %s %s: %s", CodeName(e.Code), e.Reason, e.Message)
}

// Unwrap returns the error of the context, if that ended the call.
func (e *Error) Unwrap() error { return e.cause }

// GRPCStatus returns code and message, for status.Code and status.Convert of grpc-go.
func (e *Error) GRPCStatus() *status.Status { return status.New(e.Code, e.Message) }

// CodeName returns the name of a gRPC code as in the contract, such as NOT_FOUND.
func CodeName(c codes.Code) string { return code.Code(c).String() }

// FromError returns an error of a generated stream as an [*Error]. Errors of all other calls are
// of this type already.
func FromError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	s := status.Convert(err)
	e = &Error{Code: s.Code(), Message: s.Message()}
	for _, detail := range s.Details() {
		switch detail := detail.(type) {
		case *errdetails.ErrorInfo:
			if detail.Domain == "hive" {
				e.Reason, e.Metadata = detail.Reason, detail.Metadata
			}
		case *errdetails.BadRequest:
			e.Fields = detail.FieldViolations
		case *errdetails.RetryInfo:
			e.RetryAfter = detail.RetryDelay.AsDuration()
		}
	}
	return e
}

// fromRefusal returns the refusal of a part of a call as an error.
func fromRefusal(refusal *hivev1.Refusal) *Error {
	reason := strings.TrimPrefix(refusal.GetReason().String(), reasonPrefix) // or a number
	e := &Error{
		Code:       codes.Unknown,
		Reason:     reason,
		Message:    refusal.GetMessage(),
		Metadata:   refusal.GetMetadata(),
		RetryAfter: refusal.GetRetryDelay().AsDuration(),
	}
	if number, ok := code.Code_value[about(reason).GetCode()]; ok {
		e.Code = codes.Code(number)
	}
	return e
}

const reasonPrefix = "REASON_"

// about returns what the contract declares of a reason; nil for an unknown one.
func about(reason string) *hivev1.ReasonOptions {
	values := hivev1.Reason(0).Descriptor().Values()
	value := values.ByName(protoreflect.Name(reasonPrefix + reason))
	if value == nil {
		return nil
	}
	options, _ := proto.GetExtension(value.Options(), hivev1.E_About).(*hivev1.ReasonOptions)
	return options
}

// repeats returns whether the identical request may succeed in a moment.
func (e *Error) repeats() bool {
	if e.ended {
		return false
	}
	if e.Reason != "" {
		return about(e.Reason).GetRetry() == hivev1.Retry_RETRY_SOON
	}
	return e.Code == codes.Unavailable || e.Code == codes.DeadlineExceeded || e.broken
}

// reopens returns whether a stream that ended with this error is opened again.
func (e *Error) reopens() bool {
	if e.Reason == "" && !e.ended {
		return e.Code != codes.Unimplemented // a broker without this stream will not get it
	}
	return e.Reason == "STREAM_SILENT" || e.repeats()
}
