//! API calls.

use std::borrow::Cow;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use ureq::http::{Request, Response};
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, Body, BodyReader};

use super::address::Address;
use super::error::ClientError;
use super::reply::{Receive, Send, whole};
use super::socket::{NoResolver, UnixConnector};
use crate::ErrorReply;
use crate::operation::{Body as _, Bytes, Method, Nothing, Operation};

/// The time limit for connecting to a daemon on another host.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a connection is kept for another call: less than the 20 s after which the daemon closes it.
const IDLE_TIMEOUT: Duration = Duration::from_secs(15);

/// The size of each of the two buffers of a connection. The HTTP library fills them with zeros, byte by byte, before the first request.
const BUFFER_BYTES: usize = 16 << 10;

/// The size of an upload from which on the daemon is asked before the body is sent.
const EXPECT_BYTES: usize = 64 << 10;

/// The system's file of trusted certificates.
const SYSTEM_CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// The characters that are not percent-encoded in a path.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The caller's credentials for a daemon behind TLS, and the certificates that the caller trusts.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    /// The token; if absent, no `Authorization` header is sent.
    pub token: Option<String>,
    /// A PEM file of certificates that must contain the daemon's certificate or its issuer's; if absent, the system's
    /// file.
    pub certificates: Option<PathBuf>,
}

/// A client of one daemon.
#[derive(Debug)]
pub struct Client {
    agent: Agent,
    address: Address,
    token: Option<String>,
}

impl Client {
    /// A client of the daemon at an address. It connects at the first call.
    ///
    /// # Errors
    ///
    /// The certificates can't be used.
    pub fn new(address: Address, credentials: &Credentials) -> Result<Self, ClientError> {
        Self::with_limit(address, credentials, None)
    }

    /// Like [`new`](Self::new), with a time limit for each call, including everything that a stream sends. A call that takes
    /// longer fails with [`ClientError::Connection`] and [`io::ErrorKind::TimedOut`].
    ///
    /// # Errors
    ///
    /// The certificates can't be used.
    pub fn with_limit(
        address: Address,
        credentials: &Credentials,
        limit: Option<Duration>,
    ) -> Result<Self, ClientError> {
        Self::build(address, credentials, limit, 0)
    }

    /// Like [`new`](Self::new), but an answered call leaves its connection open for the next one, for up to 15 s. If the
    /// daemon ends, or is replaced, just when a call begins, the call fails with [`ClientError::Connection`].
    ///
    /// # Errors
    ///
    /// The certificates can't be used.
    pub fn persistent(address: Address, credentials: &Credentials) -> Result<Self, ClientError> {
        Self::build(address, credentials, None, 1)
    }

    fn build(
        address: Address,
        credentials: &Credentials,
        limit: Option<Duration>,
        idle_connections: usize,
    ) -> Result<Self, ClientError> {
        let config = Agent::config_builder()
            .timeout_global(limit)
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .max_idle_connections(idle_connections)
            .max_idle_age(IDLE_TIMEOUT)
            .input_buffer_size(BUFFER_BYTES)
            .output_buffer_size(BUFFER_BYTES)
            .user_agent(concat!("clickbox/", env!("CARGO_PKG_VERSION")));
        let agent = match &address {
            Address::Unix(path) => Agent::with_parts(config.build(), UnixConnector(path.clone()), NoResolver),
            Address::Tls { .. } => {
                let config = config
                    .https_only(true)
                    .timeout_connect(Some(CONNECT_TIMEOUT))
                    .tls_config(tls(credentials)?);
                Agent::new_with_config(config.build())
            }
        };
        let token = credentials.token.clone().filter(|_| matches!(address, Address::Tls { .. }));
        Ok(Self { agent, address, token })
    }

    /// The daemon's address.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Calls an operation that takes only path parameters, given in order.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn ask<O: Receive>(
        &self,
        operation: &Operation<Nothing, Nothing, O>,
        path: &[&str],
    ) -> Result<O::Value, ClientError> {
        self.call(operation, path, &Nothing, &())
    }

    /// Calls an operation with a body.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn send<I: Send, O: Receive>(
        &self,
        operation: &Operation<Nothing, I, O>,
        path: &[&str],
        body: &I::Value,
    ) -> Result<O::Value, ClientError> {
        self.call(operation, path, &Nothing, body)
    }

    /// Calls an operation with a query and a body.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn call<Q: Serialize, I: Send, O: Receive>(
        &self,
        operation: &Operation<Q, I, O>,
        path: &[&str],
        query: &Q,
        body: &I::Value,
    ) -> Result<O::Value, ClientError> {
        let invalid = |error| ClientError::unexpected(0, error);
        let target = format!("{}{}", fill(operation.path, path), encode_query(query).map_err(invalid)?);
        let body = I::encode(body).map_err(invalid)?;
        let (status, body) = self.exchange(operation.method, &target, I::MEDIA, body)?;
        match status {
            200..300 => O::decode(status, body),
            _ => Err(refusal(status, body)),
        }
    }

    /// Sends a request. It is the same code for all operations.
    fn exchange(
        &self,
        method: Method,
        target: &str,
        media: Option<&str>,
        body: Option<Cow<'_, [u8]>>,
    ) -> Result<(u16, BodyReader<'static>), ClientError> {
        let base = match &self.address {
            Address::Unix(_) => "http://localhost".to_string(),
            tls => tls.to_string(),
        };
        let mut request = Request::builder().method(method.name()).uri(base + target);
        if let Some(media) = media {
            request = request.header("content-type", media);
        }
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let is_large = body.as_ref().is_some_and(|body| body.len() > EXPECT_BYTES);
        if is_large && media == Bytes::MEDIA {
            // What the daemon refuses by its size or a quota is not sent.
            request = request.header("expect", "100-continue");
        }
        // For a method that may have a body, an empty body stands for none.
        let body = body.or_else(|| matches!(method, Method::Post | Method::Put).then(Cow::default));
        let response = match body {
            Some(body) => {
                request.body(&*body).map_err(ureq::Error::from).and_then(|request| self.agent.run(request))
            }
            None => request.body(()).map_err(ureq::Error::from).and_then(|request| self.agent.run(request)),
        };
        self.response(response)
    }

    fn response(
        &self,
        response: Result<Response<Body>, ureq::Error>,
    ) -> Result<(u16, BodyReader<'static>), ClientError> {
        match response {
            Ok(response) => Ok((response.status().as_u16(), response.into_body().into_reader())),
            Err(error) => Err(self.failed(error)),
        }
    }

    fn failed(&self, error: ureq::Error) -> ClientError {
        let address = self.address.clone();
        match error {
            ureq::Error::Io(cause) if is_absence(&cause) => ClientError::NoDaemon { address, cause },
            ureq::Error::Io(cause) => ClientError::Connection { address, cause },
            ureq::Error::HostNotFound | ureq::Error::Timeout(ureq::Timeout::Connect) => {
                ClientError::NoDaemon { address, cause: io::Error::other(error) }
            }
            ureq::Error::Timeout(_) => {
                ClientError::Connection { address, cause: io::Error::new(io::ErrorKind::TimedOut, error) }
            }
            other => ClientError::Connection { address, cause: io::Error::other(other) },
        }
    }
}

/// The error that the daemon answered with.
fn refusal(status: u16, body: BodyReader<'static>) -> ClientError {
    let reply = whole(status, body);
    match reply.map(|reply| serde_json::from_slice::<ErrorReply>(&reply)) {
        Ok(Ok(reply)) => ClientError::Api(reply.error),
        Ok(Err(error)) => ClientError::unexpected(status, error),
        Err(error) => error,
    }
}

/// Whether an error means that nothing listens at the address, rather than that the peer closed the connection.
fn is_absence(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
    )
}

/// A TLS configuration that trusts only the certificates in the file.
fn tls(credentials: &Credentials) -> Result<TlsConfig, ClientError> {
    let path = credentials.certificates.clone().unwrap_or_else(|| SYSTEM_CERTIFICATES.into());
    let failed = |cause| ClientError::Certificates { path: path.clone(), cause };
    let text = std::fs::read(&path).map_err(failed)?;
    let items: Result<Vec<PemItem>, _> = parse_pem(&text).collect();
    let items = items.map_err(|error| failed(io::Error::other(error)))?;
    let certificates: Vec<_> = items
        .into_iter()
        .filter_map(|item| match item {
            PemItem::Certificate(certificate) => Some(certificate),
            _ => None,
        })
        .collect();
    if certificates.is_empty() {
        return Err(failed(io::Error::new(io::ErrorKind::InvalidData, "it has no certificate")));
    }
    Ok(TlsConfig::builder()
        .root_certs(RootCerts::new_with_certs(&certificates))
        .unversioned_rustls_crypto_provider(rustls::crypto::ring::default_provider().into())
        .build())
}

/// Fills the parameters into a path.
fn fill(path: &str, parameters: &[&str]) -> String {
    let mut parameters = parameters.iter();
    let mut pieces = path.split('{');
    let mut filled = pieces.next().unwrap_or_default().to_string();
    for piece in pieces {
        let value = parameters.next().copied().unwrap_or_default();
        filled.extend(utf8_percent_encode(value, UNRESERVED));
        filled += piece.split_once('}').map_or("", |(_, rest)| rest);
    }
    filled
}

/// Encodes a structure of plain values as a query with its question mark, or as an empty string.
fn encode_query(query: &impl Serialize) -> serde_json::Result<String> {
    let value = serde_json::to_value(query)?;
    let mut text = String::new();
    for (name, value) in value.as_object().into_iter().flatten() {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_string);
        text.push(if text.is_empty() { '?' } else { '&' });
        text += &format!("{name}={}", utf8_percent_encode(&value, UNRESERVED));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CaptureQuery, EventQuery};

    #[test]
    fn parameters_are_encoded() {
        assert_eq!(fill("/v1/boxes", &[]), "/v1/boxes");
        assert_eq!(
            fill("/v1/boxes/{box}/handlers/{handler}", &["fw", "second:a/b.c d%"]),
            "/v1/boxes/fw/handlers/second%3Aa%2Fb.c%20d%25"
        );
        let query = CaptureQuery { port: "fw:0".parse().expect("a port"), snap: Some(64), count: None };
        assert_eq!(encode_query(&query).expect("a query"), "?port=fw%3A0&snap=64");
        assert_eq!(encode_query(&EventQuery::default()).expect("a query"), "?follow=false");
        assert_eq!(encode_query(&Nothing).expect("a query"), "");
    }
}
