//! The codec of every call: protobuf, in buffers of the size of a message.
//!
//! tonic's own codec begins with buffers of 8 KiB, and the answers of a stream keep theirs for as
//! long as it is open, which for an agent is hours. Invariant: the bytes on the wire are those of
//! tonic's codec.

use std::marker::PhantomData;

use prost::Message;
use prost::bytes::{Buf as _, BufMut as _, Bytes};
use tonic::Status;
use tonic::codec::{BufferSettings, Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

/// First size of a buffer, in bytes; most messages fit.
const BUFFER_BYTES: usize = 512;
/// A stream hands its messages over when so many bytes are there, as tonic's own codec does.
const YIELD_BYTES: usize = 32 * 1024;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct ProstCodec<T, U>(PhantomData<(T, U)>);

/// The encoder of [`ProstCodec`].
#[derive(Clone, Copy, Debug)]
pub struct ProstEncoder<T>(PhantomData<T>);

fn buffers() -> BufferSettings {
    BufferSettings::new(BUFFER_BYTES, YIELD_BYTES)
}

impl<T, U> Default for ProstCodec<T, U> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T, U> Codec for ProstCodec<T, U>
where
    T: Message + Send + 'static,
    U: Message + Default + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = ProstEncoder<T>;
    type Decoder = tonic_prost::ProstDecoder<U>;

    fn encoder(&mut self) -> Self::Encoder {
        ProstEncoder(PhantomData)
    }

    fn decoder(&mut self) -> Self::Decoder {
        tonic_prost::ProstDecoder::new(buffers())
    }
}

impl<T: Message> Encoder for ProstEncoder<T> {
    type Item = T;
    type Error = Status;

    fn encode(&mut self, item: T, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        // A long message grows the buffer once, and not by each of its fields.
        buffer.reserve(item.encoded_len());
        item.encode(buffer).map_err(|error| Status::internal(error.to_string()))
    }

    fn buffer_settings(&self) -> BufferSettings {
        buffers()
    }
}

/// The codec of calls whose messages are bytes: a repeat sends the same ones.
#[derive(Clone, Copy, Debug)]
pub struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.reserve(item.len());
        buffer.put(item);
        Ok(())
    }

    fn buffer_settings(&self) -> BufferSettings {
        buffers()
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        let length = buffer.remaining();
        Ok(Some(buffer.copy_to_bytes(length)))
    }

    fn buffer_settings(&self) -> BufferSettings {
        buffers()
    }
}
