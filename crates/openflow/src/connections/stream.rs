//! A connection over TCP, with or without TLS, that never blocks.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};

/// A connection to a controller.
pub(super) struct Stream {
    socket: TcpStream,
    tls: Option<Box<Tls>>,
}

struct Tls {
    connection: rustls::Connection,
    /// Received bytes that are decrypted and not yet read.
    unread: usize,
}

impl Stream {
    pub(super) fn plain(socket: TcpStream) -> Self {
        Self { socket, tls: None }
    }

    pub(super) fn protected(socket: TcpStream, connection: rustls::Connection) -> Self {
        Self { socket, tls: Some(Box::new(Tls { connection, unread: 0 })) }
    }

    /// Whether there is something to send besides what the caller has.
    pub(super) fn wants_write(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.connection.wants_write())
    }

    /// Whether there is something to read that the socket does not tell of.
    pub(super) fn has_unread(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.unread > 0)
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Read for Stream {
    /// Reads what there is: zero bytes at the end. A failure of TLS is an error that wraps [`rustls::Error`].
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return self.socket.read(buffer) };
        // Each record that arrives may contain no data, as in the handshake. Others get their turn between them.
        for _ in 0..16 {
            match tls.connection.reader().read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // The controller ended the connection without saying so.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
                Ok(count) => {
                    tls.unread = tls.unread.saturating_sub(count);
                    return Ok(count);
                }
                Err(error) => return Err(error),
            }
            tls.unread = 0;
            let count = tls.connection.read_tls(&mut self.socket)?;
            match tls.connection.process_new_packets() {
                Ok(state) => tls.unread = state.plaintext_bytes_to_read(),
                Err(error) => {
                    // The controller learns what is wrong, if it listens.
                    let _ = tls.connection.write_tls(&mut self.socket);
                    return Err(io::Error::new(ErrorKind::InvalidData, error));
                }
            }
            if count == 0 && tls.unread == 0 {
                return Ok(0);
            }
        }
        Err(ErrorKind::WouldBlock.into())
    }
}

impl Write for Stream {
    /// Takes bytes to send.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return self.socket.write(bytes) };
        while tls.connection.wants_write() {
            tls.connection.write_tls(&mut self.socket)?;
        }
        match tls.connection.writer().write(bytes)? {
            // What it keeps until the handshake is over is bounded.
            0 => Err(ErrorKind::WouldBlock.into()),
            count => Ok(count),
        }
    }

    /// Sends what was taken, as much as the socket takes.
    fn flush(&mut self) -> io::Result<()> {
        let Some(tls) = &mut self.tls else { return Ok(()) };
        while tls.connection.wants_write() {
            tls.connection.write_tls(&mut self.socket)?;
        }
        Ok(())
    }
}
