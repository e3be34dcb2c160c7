//! Clients and servers in network namespaces: pings, TCP and UDP.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketType, ipproto, socket, sockopt};

use super::error::DemoError;
use super::namespace::Namespace;

/// Time limit of an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);
/// Attempts of a ping. The first may be lost while a box starts.
const PING_ATTEMPTS: usize = 3;
/// Bytes that a TCP client sends: several segments.
const ECHO_LENGTH: usize = 100_000;
/// Bytes of an IPv4 header without options.
const IP_HEADER_LENGTH: usize = 20;

/// The answer to a ping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PingAnswer {
    /// An echo reply.
    Reply,
    /// An ICMP error: the time to live or the hop limit expired.
    TimeExceeded,
}

/// Pings `target`, several times if an answer is expected; returns the answer, if one comes, and its sender.
pub(super) fn ping(
    from: &Namespace,
    target: IpAddr,
    ttl: u8,
    is_answer_expected: bool,
) -> Result<io::Result<Option<(PingAnswer, IpAddr)>>, DemoError> {
    from.inside(|| {
        let socket = raw_socket(target, ttl)?;
        for _ in 0..if is_answer_expected { PING_ATTEMPTS } else { 1 } {
            if let Some(answer) = ping_once(&socket, target)? {
                return Ok(Some(answer));
            }
        }
        Ok(None)
    })
}

/// A raw ICMP socket. `UdpSocket` offers what it needs: datagrams with the address of their sender.
fn raw_socket(target: IpAddr, ttl: u8) -> io::Result<UdpSocket> {
    let (family, protocol) = match target {
        IpAddr::V4(_) => (AddressFamily::INET, ipproto::ICMP),
        IpAddr::V6(_) => (AddressFamily::INET6, ipproto::ICMPV6),
    };
    let socket: OwnedFd = socket(family, SocketType::RAW, Some(protocol))?;
    match target {
        IpAddr::V4(_) => sockopt::set_ip_ttl(&socket, ttl.into())?,
        IpAddr::V6(_) => sockopt::set_ipv6_unicast_hops(&socket, Some(ttl))?,
    }
    Ok(UdpSocket::from(socket))
}

fn ping_once(socket: &UdpSocket, target: IpAddr) -> io::Result<Option<(PingAnswer, IpAddr)>> {
    static NUMBER: AtomicU16 = AtomicU16::new(1);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let is_ip4 = target.is_ipv4();
    let (request, reply, exceeded) = if is_ip4 { (8, 0, 11) } else { (128, 129, 3) };
    let [id_high, id_low] = (std::process::id() as u16).to_be_bytes();
    let [number_high, number_low] = number.to_be_bytes();
    let echo = [id_high, id_low, number_high, number_low];
    let mut message = vec![request, 0, 0, 0];
    message.extend(echo);
    message.extend([0x5a; 48]);
    if is_ip4 {
        // The kernel computes that of ICMPv6.
        let sum = checksum(&message).to_be_bytes();
        message.splice(2..4, sum);
    }
    socket.send_to(&message, SocketAddr::new(target, 0))?;
    let deadline = Instant::now() + ANSWER_TIMEOUT;
    let mut buffer = [0; 2048];
    while let Some(left) = deadline.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
        socket.set_read_timeout(Some(left))?;
        let (length, sender) = match socket.recv_from(&mut buffer) {
            Ok(received) => received,
            Err(error) if is_timeout(&error) => break,
            Err(error) => return Err(error),
        };
        // A raw IPv4 socket delivers the IP header too.
        let start = if is_ip4 { IP_HEADER_LENGTH } else { 0 };
        let message = buffer.get(start..length).unwrap_or_default();
        // An error quotes the IP header and the request.
        let quote = 8 + if is_ip4 { IP_HEADER_LENGTH } else { 40 } + 4;
        let at = |offset: usize| message.get(offset..offset + 4) == Some(&echo[..]);
        match message.first() {
            Some(kind) if *kind == reply && at(4) => return Ok(Some((PingAnswer::Reply, sender.ip()))),
            Some(kind) if *kind == exceeded && at(quote) => {
                return Ok(Some((PingAnswer::TimeExceeded, sender.ip())));
            }
            _ => {}
        }
    }
    Ok(None)
}

/// The Internet checksum (RFC 1071) of an even number of bytes.
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks_exact(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    !(sum as u16)
}

/// Whether an operation ended because of its time limit.
pub(super) fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// Listens for TCP connections.
pub(super) fn listen(at: &Namespace, address: SocketAddr) -> Result<io::Result<TcpListener>, DemoError> {
    at.inside(|| {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    })
}

/// The client's address, as the server saw it, and the index of the listener.
pub(super) type Served = (usize, IpAddr);

/// Connects from a namespace to `target`, sends bytes, and compares what comes back. The first of `listeners` that gets
/// the connection echoes the bytes. Returns `None` if no connection came about in time.
pub(super) fn echo(
    from: &Namespace,
    target: SocketAddr,
    listeners: &[TcpListener],
) -> Result<io::Result<Option<Served>>, DemoError> {
    let connected = from.inside(|| TcpStream::connect_timeout(&target, ANSWER_TIMEOUT))?;
    Ok(connected.map_or_else(
        |error| {
            let is_refused = matches!(
                error.kind(),
                io::ErrorKind::ConnectionRefused
                    | io::ErrorKind::HostUnreachable
                    | io::ErrorKind::NetworkUnreachable
            );
            if is_refused || is_timeout(&error) { Ok(None) } else { Err(error) }
        },
        |client| exchange(client, listeners),
    ))
}

fn exchange(mut client: TcpStream, listeners: &[TcpListener]) -> io::Result<Option<Served>> {
    let deadline = Instant::now() + ANSWER_TIMEOUT;
    let (server, served) = loop {
        let accept = |(index, listener): (usize, &TcpListener)| Some((index, listener.accept().ok()?));
        if let Some((index, (stream, peer))) = listeners.iter().enumerate().find_map(accept) {
            break (stream, (index, peer.ip()));
        }
        if Instant::now() > deadline {
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    server.set_nonblocking(false)?;
    for stream in [&server, &client] {
        stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
    }
    let sent: Vec<u8> = (0..ECHO_LENGTH).map(|index| (index % 251) as u8).collect();
    let mut received = Vec::new();
    std::thread::scope(|scope| {
        let echo = scope.spawn(|| {
            let (mut reader, mut writer) = (&server, &server);
            let result = io::copy(&mut reader, &mut writer);
            // Otherwise the client would wait.
            let _ = server.shutdown(std::net::Shutdown::Write);
            result
        });
        let writer = client.try_clone()?;
        let write = scope.spawn({
            let sent = &sent;
            move || {
                let mut writer = writer;
                writer.write_all(sent)?;
                writer.shutdown(std::net::Shutdown::Write)
            }
        });
        client.read_to_end(&mut received)?;
        for thread in [write.join(), echo.join().map(|result| result.map(|_| ()))] {
            thread.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        }
        io::Result::Ok(())
    })?;
    if received == sent {
        Ok(Some(served))
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidData, "other bytes came back"))
    }
}

/// Sends a UDP datagram from a namespace to `target` in `to`, which answers it; returns the sender's address as the
/// server saw it, or `None` if no answer came.
pub(super) fn datagram(
    from: &Namespace,
    to: &Namespace,
    target: SocketAddr,
) -> Result<io::Result<Option<IpAddr>>, DemoError> {
    let server = to.inside(|| UdpSocket::bind(target))?;
    let unspecified: IpAddr = match target {
        SocketAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    };
    let client = from.inside(|| UdpSocket::bind((unspecified, 0)))?;
    let run = || {
        let (server, client) = (server?, client?);
        for socket in [&server, &client] {
            socket.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        }
        let mut buffer = [0; 64];
        client.send_to(b"question", target)?;
        let (length, peer) = server.recv_from(&mut buffer)?;
        server.send_to(buffer.get(..length).unwrap_or_default(), peer)?;
        let (length, sender) = client.recv_from(&mut buffer)?;
        let is_right = sender == target && buffer.get(..length) == Some(&b"question"[..]);
        Ok(is_right.then(|| peer.ip()))
    };
    Ok(match run() {
        Err(error) if is_timeout(&error) => Ok(None),
        result => result,
    })
}
