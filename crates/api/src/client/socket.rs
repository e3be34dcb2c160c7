//! HTTP over Unix sockets.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use ureq::Error;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, Transport,
};

/// Bytes of a request that wait to be sent together, at most. A daemon that gets head and body at once is woken once.
const MAX_UNSENT: usize = 64 << 10;

/// Connects to one socket, regardless of the URL.
#[derive(Debug)]
pub(crate) struct UnixConnector(pub(crate) PathBuf);

impl Connector for UnixConnector {
    type Out = UnixTransport;

    fn connect(&self, details: &ConnectionDetails, _: Option<()>) -> Result<Option<UnixTransport>, Error> {
        let config = details.config;
        let buffers = LazyBuffers::new(config.input_buffer_size(), config.output_buffer_size());
        let stream = UnixStream::connect(&self.0)?;
        Ok(Some(UnixTransport { stream, buffers, unsent: Vec::new(), limits: [None; 2] }))
    }
}

/// A resolver without addresses: a socket needs none, but the HTTP library requires a resolver.
#[derive(Debug)]
pub(crate) struct NoResolver;

impl Resolver for NoResolver {
    fn resolve(&self, _: &Uri, _: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, Error> {
        let mut addresses = self.empty();
        addresses.push(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)));
        Ok(addresses)
    }
}

/// A connection.
#[derive(Debug)]
pub(crate) struct UnixTransport {
    stream: UnixStream,
    buffers: LazyBuffers,
    /// What is sent before the next input is awaited.
    unsent: Vec<u8>,
    /// The time limits of writes and reads that the socket has.
    limits: [Option<Duration>; 2],
}

impl UnixTransport {
    /// Sends what waits.
    fn flush(&mut self, timeout: &NextTimeout) -> Result<(), Error> {
        if self.unsent.is_empty() {
            return Ok(());
        }
        let limit = timeout.not_zero().map(|time| *time);
        if std::mem::replace(&mut self.limits[0], limit) != limit {
            self.stream.set_write_timeout(limit)?;
        }
        let sent = self.stream.write_all(&self.unsent);
        self.unsent.clear();
        match sent {
            // A daemon that rejects a request body early replies and closes the connection. The reply can still be
            // read.
            Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {
                Ok(())
            }
            other => other.map_err(|error| failed(error, timeout)),
        }
    }
}

/// The error of a system call under a timeout.
fn failed(error: std::io::Error, timeout: &NextTimeout) -> Error {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => Error::Timeout(timeout.reason),
        _ => error.into(),
    }
}

impl Transport for UnixTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        self.unsent.extend_from_slice(self.buffers.output().get(..amount).unwrap_or_default());
        if self.unsent.len() < MAX_UNSENT { Ok(()) } else { self.flush(&timeout) }
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        self.flush(&timeout)?;
        let limit = timeout.not_zero().map(|time| *time);
        if std::mem::replace(&mut self.limits[1], limit) != limit {
            self.stream.set_read_timeout(limit)?;
        }
        let input = self.buffers.input_append_buf();
        let amount = loop {
            match self.stream.read(input) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => break other.map_err(|error| failed(error, &timeout))?,
            }
        };
        self.buffers.input_appended(amount);
        Ok(amount > 0)
    }

    fn is_open(&mut self) -> bool {
        // Neither an end nor a byte may wait: the reply before was read to its end.
        let waiting = self.stream.set_nonblocking(true).and_then(|()| self.stream.read(&mut [0]));
        let is_quiet = waiting.is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
        is_quiet && self.stream.set_nonblocking(false).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::os::unix::net::UnixListener;

    use super::*;
    use crate::client::{Address, Client, Credentials};
    use crate::{HandlerWrite, operation};

    /// A daemon that got the head first would be woken twice.
    #[test]
    fn head_and_body_arrive_together() {
        let path = std::env::temp_dir().join(format!("clickbox-client-{}", std::process::id()));
        let listener = UnixListener::bind(&path).unwrap();
        let daemon = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 4096];
            let length = stream.read(&mut request).unwrap();
            stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
            String::from_utf8_lossy(&request[..length]).into_owned()
        });
        let client = Client::new(Address::Unix(path.clone()), &Credentials::default()).unwrap();
        client.send(&operation::WRITE, &["fw", "c.reset"], &HandlerWrite::default()).unwrap();
        let request = daemon.join().unwrap();
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("PUT ") && body.starts_with('{') && body.ends_with('}'), "{request}");
        std::fs::remove_file(path).unwrap();
    }

    /// The buffers of a connection are small: see `BUFFER_BYTES`.
    #[test]
    fn bodies_that_are_larger_than_the_buffers_arrive_whole() {
        const BYTES: usize = 300_000;
        let sent: Vec<u8> = (0..=u8::MAX).cycle().take(BYTES).collect();
        let reply = [&sent[..], b"the end"].concat();
        let path = std::env::temp_dir().join(format!("clickbox-bodies-{}", std::process::id()));
        let listener = UnixListener::bind(&path).unwrap();
        let daemon = std::thread::spawn({
            let reply = reply.clone();
            move || {
                let mut upload = Vec::new();
                for answer in [&b""[..], &reply] {
                    let (stream, _) = listener.accept().unwrap();
                    let mut stream = BufReader::new(stream);
                    let mut length = 0;
                    loop {
                        let mut line = String::new();
                        stream.read_line(&mut line).unwrap();
                        match line.trim_end().split_once(": ") {
                            Some(("content-length", value)) => length = value.parse().unwrap(),
                            Some(("expect", _)) => {
                                stream.get_mut().write_all(b"HTTP/1.1 100 Continue\r\n\r\n").unwrap();
                            }
                            _ if line == "\r\n" => break,
                            _ => {}
                        }
                    }
                    let mut body = vec![0; length];
                    stream.read_exact(&mut body).unwrap();
                    upload.extend(body);
                    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", answer.len());
                    stream.get_mut().write_all(&[head.as_bytes(), answer].concat()).unwrap();
                }
                upload
            }
        });
        let client = Client::new(Address::Unix(path.clone()), &Credentials::default()).unwrap();
        client.send(&operation::UPLOAD, &["rules"], &sent).unwrap();
        let mut image = Vec::new();
        client.ask(&operation::IMAGE, &["firewall"]).unwrap().read_to_end(&mut image).unwrap();
        assert!(image == reply);
        assert!(daemon.join().unwrap() == sent);
        std::fs::remove_file(path).unwrap();
    }
}
