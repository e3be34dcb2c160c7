//! `ChatterSocket`: sends the log to other programs, over TCP and Unix sockets.

use element::arguments::{Raw, Word};
use element::prelude::*;
use element::{Descriptor, Io, LogTap, Stream};

use super::listen_address::ListenAddress;
use super::retrying_listener::RetryingListener;

/// The greeting of a new connection.
const GREETING: &str = "Click::ChatterSocket/1.0\r\n";
/// Maximum connections; each may buffer `MAX_BEHIND` bytes of the log.
const MAX_CONNECTIONS: usize = 64;
/// Maximum unsent bytes of a client; a slower client is disconnected.
const MAX_BEHIND: usize = 500_000;

/// Streams the log to clients over TCP or a Unix socket.
///
/// Each client gets a greeting and then every log line. Input from clients is ignored. After a hot swap, connections
/// continue if the new configuration has a ChatterSocket with the same name, type, address and CHANNEL, and RETRIES of
/// at least 1.
/// ```click
/// ChatterSocket(TCP, 41950+, RETRIES 5, RETRY_WARNINGS false);
/// InfiniteSource(LIMIT 5, STOP true) -> Print(seen) -> c :: Counter -> Discard;
/// ```
/// ```expect
/// c.count = 5
/// ```
/// ## Differences
/// All elements write to the default channel; other channels stay silent. Errors of a new configuration go to the
/// client that wrote it, not to the log. A 65th connection is refused. As with ControlSocket, the port may end in `+`.
#[derive(Args)]
#[element(
    name = "ChatterSocket",
    group = "control",
    ports = "0/0",
    phase = "information",
    see = "ControlSocket"
)]
pub struct ChatterSocketArgs {
    /// TCP or UNIX.
    #[arg(position)]
    r#type: String,
    /// TCP port, or the same as FILENAME.
    #[arg(position)]
    port: Option<Raw>,
    /// Path of the Unix socket.
    filename: Option<String>,
    /// Channel to stream.
    #[arg(default = "default")]
    channel: Word,
    /// Do not print lines of channels other than the default one.
    #[arg(default = "true")]
    quiet_channel: bool,
    /// Send the greeting.
    #[arg(default = "true")]
    greeting: bool,
    /// Attempts, one per second, if the address is in use.
    #[arg(default = "0")]
    retries: i32,
    /// Log failed attempts.
    #[arg(default = "true")]
    retry_warnings: bool,
}

pub struct ChatterSocket {
    listener: RetryingListener,
    channel: String,
    greeting: bool,
    tap: Option<Rc<LogTap>>,
    clients: Vec<Client>,
}

/// A connection and its unsent part of the log.
struct Client {
    stream: Box<dyn Stream>,
    output: Vec<u8>,
    sent: usize,
    is_over: bool,
}

impl Element for ChatterSocket {
    type Args = ChatterSocketArgs;

    fn new(args: ChatterSocketArgs, setup: &mut Setup) -> Result<ChatterSocket, SetupError> {
        let address = ListenAddress::new(&args.r#type, args.port, args.filename, None, setup)?;
        if let ListenAddress::Inherited(_) = address {
            return Err(SetupError::new("unknown socket type ‘SOCKET’"));
        }
        // No element writes to another channel, so there is nothing to suppress.
        let _ = args.quiet_channel;
        Ok(ChatterSocket {
            listener: RetryingListener::new(address, false, args.retries, args.retry_warnings),
            channel: args.channel.0,
            greeting: args.greeting,
            tap: None,
            clients: Vec::new(),
        })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        if self.channel == "default" {
            self.tap = Some(cx.tap());
        }
        self.listener.start(cx)
    }

    fn timer(&mut self, cx: &mut Context, _: usize) {
        self.listener.retry(cx);
    }

    fn woken(&mut self, cx: &mut Context) {
        let lines = self.tap.as_ref().map(|tap| tap.take()).unwrap_or_default();
        // ASCII quotes, as in the replies of a control socket: the clients' character set is unknown.
        let lines = lines.replace(['‘', '’'], "'");
        self.clients.iter_mut().for_each(|client| client.output.extend_from_slice(lines.as_bytes()));
        self.flush(cx);
    }

    fn ready(&mut self, cx: &mut Context, descriptor: Descriptor) {
        if self.listener.is(descriptor) {
            if let Some(stream) = self.listener.accept(cx)
                && self.clients.len() < MAX_CONNECTIONS
            {
                let output = if self.greeting { GREETING.into() } else { Vec::new() };
                self.clients.push(Client { stream, output, sent: 0, is_over: false });
            }
        } else if let Some(client) = self.clients.iter_mut().find(|client| client.is(descriptor)) {
            client.ignore();
        } else {
            cx.watch(descriptor, false, false);
        }
        self.flush(cx);
    }

    fn inherit(&mut self, old: &mut ChatterSocket, cx: &mut Context) {
        if self.channel == old.channel && self.listener.inherit(&mut old.listener, cx) {
            self.clients.append(&mut old.clients);
            self.flush(cx);
        }
    }

    fn cleanup(&mut self, _: &mut Context) {
        self.clients.drain(..).for_each(|mut client| client.flush());
        self.listener.stop();
    }
}

impl ChatterSocket {
    /// Sends pending data, and removes finished connections.
    fn flush(&mut self, cx: &Context) {
        self.clients.iter_mut().for_each(Client::flush);
        self.clients.retain(|client| {
            let descriptor = client.stream.descriptor();
            cx.watch(descriptor, !client.is_over, !client.is_over && !client.output.is_empty());
            !client.is_over
        });
    }
}

impl Client {
    fn is(&self, descriptor: Descriptor) -> bool {
        self.stream.descriptor() == descriptor
    }

    /// Discards input, which is read only to notice a disconnect.
    fn ignore(&mut self) {
        let mut nowhere = [0; 512];
        self.is_over |= matches!(self.stream.read(&mut nowhere), Ok(Io::Closed) | Err(_));
    }

    /// Sends pending data.
    fn flush(&mut self) {
        while let Some(rest) = self.output.get(self.sent..).filter(|rest| !rest.is_empty() && !self.is_over) {
            match self.stream.write(rest) {
                Ok(Io::Done(count)) if count > 0 => self.sent += count,
                Ok(Io::Wait | Io::Done(_)) => {
                    self.is_over = rest.len() > MAX_BEHIND;
                    break;
                }
                Ok(Io::Closed) | Err(_) => self.is_over = true,
            }
        }
        self.output.drain(..self.sent);
        self.sent = 0;
    }
}
