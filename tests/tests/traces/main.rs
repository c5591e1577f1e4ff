//! Traces, as a collector of OpenTelemetry gets them from a real broker.

mod collector;
mod export;
mod journey;
mod otlp;
mod real;
