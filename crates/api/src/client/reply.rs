//! The bodies of requests and replies.

use std::borrow::Cow;
use std::io::{BufRead, BufReader, Read};
use std::marker::PhantomData;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use ureq::BodyReader;

use super::error::ClientError;
use crate::operation::{Body, Bytes, Capture, Json, Lines, Metrics, Nothing};

/// The maximum size of a reply that is read at once. The largest is an exported stack: 256 MB of files in base64, and its
/// configurations. Stops: a peer that fills the memory.
const MAX_REPLY: u64 = 512 << 20;

/// The maximum length of a line in a stream.
const MAX_LINE: u64 = 1 << 20;

/// A request body.
pub trait Send: Body {
    /// The value that it encodes.
    type Value: ?Sized;

    /// Encodes the value.
    ///
    /// # Errors
    ///
    /// The value can't be represented in JSON.
    fn encode(value: &Self::Value) -> serde_json::Result<Option<Cow<'_, [u8]>>>;
}

impl Send for Nothing {
    type Value = ();

    fn encode((): &()) -> serde_json::Result<Option<Cow<'_, [u8]>>> {
        Ok(None)
    }
}

impl<T: Serialize + JsonSchema> Send for Json<T> {
    type Value = T;

    fn encode(value: &T) -> serde_json::Result<Option<Cow<'_, [u8]>>> {
        Ok(Some(serde_json::to_vec(value)?.into()))
    }
}

impl Send for Bytes {
    type Value = [u8];

    fn encode(value: &[u8]) -> serde_json::Result<Option<Cow<'_, [u8]>>> {
        Ok(Some(value.into()))
    }
}

/// A reply body.
pub trait Receive: Body {
    /// The decoded value.
    type Value;

    /// Decodes the body.
    ///
    /// # Errors
    ///
    /// The body does not have the expected form.
    fn decode(status: u16, body: BodyReader<'static>) -> Result<Self::Value, ClientError>;
}

/// The bytes of a reply that is not a stream.
pub(crate) fn whole(status: u16, body: BodyReader<'static>) -> Result<Vec<u8>, ClientError> {
    let mut bytes = Vec::new();
    body.take(MAX_REPLY + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| ClientError::unexpected(status, error))?;
    if bytes.len() as u64 > MAX_REPLY {
        return Err(ClientError::unexpected(status, "it is too long"));
    }
    Ok(bytes)
}

impl Receive for Nothing {
    type Value = ();

    fn decode(_: u16, _: BodyReader<'static>) -> Result<(), ClientError> {
        Ok(())
    }
}

impl<T: DeserializeOwned + JsonSchema> Receive for Json<T> {
    type Value = T;

    fn decode(status: u16, body: BodyReader<'static>) -> Result<T, ClientError> {
        serde_json::from_slice(&whole(status, body)?).map_err(|error| ClientError::unexpected(status, error))
    }
}

impl Receive for Metrics {
    type Value = String;

    fn decode(status: u16, body: BodyReader<'static>) -> Result<String, ClientError> {
        String::from_utf8(whole(status, body)?).map_err(|error| ClientError::unexpected(status, error))
    }
}

impl Receive for Capture {
    type Value = BodyReader<'static>;

    fn decode(_: u16, body: BodyReader<'static>) -> Result<BodyReader<'static>, ClientError> {
        Ok(body)
    }
}

impl Receive for Bytes {
    type Value = BodyReader<'static>;

    fn decode(_: u16, body: BodyReader<'static>) -> Result<BodyReader<'static>, ClientError> {
        Ok(body)
    }
}

impl<T: DeserializeOwned + JsonSchema> Receive for Lines<T> {
    type Value = LineStream<T>;

    fn decode(status: u16, body: BodyReader<'static>) -> Result<LineStream<T>, ClientError> {
        Ok(LineStream {
            status,
            body: BufReader::new(body),
            line: Vec::new(),
            ended: false,
            value: PhantomData,
        })
    }
}

/// An iterator over the values of a stream. It ends when the daemon closes the stream, or after the first error.
pub struct LineStream<T> {
    status: u16,
    body: BufReader<BodyReader<'static>>,
    line: Vec<u8>,
    ended: bool,
    value: PhantomData<T>,
}

impl<T> std::fmt::Debug for LineStream<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LineStream")
            .field("status", &self.status)
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

impl<T: DeserializeOwned> LineStream<T> {
    /// The next value, if there is one. Empty lines are keep-alives.
    fn read(&mut self) -> Result<Option<T>, ClientError> {
        loop {
            self.line.clear();
            let read = (&mut self.body).take(MAX_LINE).read_until(b'\n', &mut self.line);
            match read.map_err(|error| ClientError::unexpected(self.status, error))? {
                0 => return Ok(None),
                _ if self.line.trim_ascii().is_empty() => {}
                _ if self.line.ends_with(b"\n") => break,
                _ => return Err(ClientError::unexpected(self.status, "a line is cut off")),
            }
        }
        let value = serde_json::from_slice(&self.line);
        value.map(Some).map_err(|error| ClientError::unexpected(self.status, error))
    }
}

impl<T: DeserializeOwned> Iterator for LineStream<T> {
    type Item = Result<T, ClientError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.read().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}
