//! `ControlSocket`: gives other programs access to handlers, over TCP and Unix sockets.

use element::arguments::{ElementName, Raw};
use element::prelude::*;
use element::{Descriptor, HandlerInfo, HandlerKind};

use super::connection::Connection;
use super::listen_address::ListenAddress;
use super::llrpc::Call;
use super::protocol::{Command, HELP, Parsed, code};
use super::retrying_listener::{RetryingListener, declaration};

/// The greeting of a new connection.
const GREETING: &str = "Click::ControlSocket/1.3\r\n";
/// Maximum connections; each may buffer a command's data.
const MAX_CONNECTIONS: usize = 64;
/// The timer that continues writes.
const WRITE_TIMER: usize = 1;
/// Commands of a connection that are executed before others get their turn.
const MAX_COMMANDS: usize = 32;

/// Serves handlers to other programs over TCP or a Unix socket, in Click's line protocol.
///
/// Commands:
///
/// - `READ handler [value]` and `WRITE handler [value]`;
/// - `READDATA handler n` and `WRITEDATA handler n`, followed by n bytes;
/// - `READUNTIL handler [end]` and `WRITEUNTIL handler [end]`, followed by lines up to one that equals `end`;
/// - `CHECKREAD handler` and `CHECKWRITE handler`;
/// - `LLRPC element#number [n]`, `HELP`, `QUIT`.
///
/// Replies start with a code: 200 success, 500 syntax error, 501 unknown command, 510 no such element, 511 no such
/// handler, 520 handler error, 530 permission denied. A value follows after a line `DATA n`.
///
/// After a hot swap, connections continue if the new configuration has a ControlSocket with the same name, type and
/// address, and RETRIES of at least 1.
/// ```click
/// ControlSocket(TCP, 41930+, RETRIES 5, RETRY_WARNINGS false);
/// InfiniteSource(LIMIT 5, STOP true) -> c :: Counter -> Discard;
/// ```
/// ```expect
/// c.count = 5
/// ```
/// ## Differences
/// Commands and data of more than 16 MiB are refused, and so is a 65th connection. Data that is not UTF-8 reaches
/// handlers with replacement characters. Low-level calls exist only for counts, rates and switches.
#[derive(Args)]
#[element(name = "ControlSocket", group = "control", ports = "0/0", see = "Script", shards = "first")]
pub struct ControlSocketArgs {
    /// TCP, UNIX, or SOCKET for an inherited connection.
    #[arg(position)]
    r#type: String,
    /// TCP port; with `+`, the first free one from there. Or the same as FILENAME or FD.
    #[arg(position)]
    port: Option<Raw>,
    /// Path of the Unix socket.
    filename: Option<String>,
    /// Descriptor of the inherited connection.
    fd: Option<Raw>,
    /// Refuse writes.
    #[arg(default = "false")]
    readonly: bool,
    /// Element whose handlers replace all others.
    proxy: Option<ElementName>,
    /// Log when connections open and close.
    #[arg(default = "false")]
    verbose: bool,
    /// Attempts, one per second, if the address is in use.
    #[arg(default = "0")]
    retries: i32,
    /// Log failed attempts.
    #[arg(default = "true")]
    retry_warnings: bool,
    /// Accept TCP connections only from this host.
    #[arg(default = "false")]
    localhost: bool,
}

pub struct ControlSocket {
    listener: RetryingListener,
    connections: Vec<Connection>,
    read_only: bool,
    proxy: Option<String>,
    verbose: bool,
}

/// The code and text of an error reply.
type ErrorReply = (u16, String);

impl Element for ControlSocket {
    type Args = ControlSocketArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read_with("port", "The TCP port that it listens on.", |socket, _, _| {
            socket.own_handler("port").ok_or_else(|| HandlerError::NoHandler("port".into()))
        }),
        Handler::read_with("filename", "Path of the Unix socket.", |socket, _, _| {
            socket.own_handler("filename").ok_or_else(|| HandlerError::NoHandler("filename".into()))
        }),
    ];

    fn new(args: ControlSocketArgs, setup: &mut Setup) -> Result<ControlSocket, SetupError> {
        let address = ListenAddress::new(&args.r#type, args.port, args.filename, args.fd, setup)?;
        Ok(ControlSocket {
            listener: RetryingListener::new(address, args.localhost, args.retries, args.retry_warnings),
            connections: Vec::new(),
            read_only: args.readonly,
            proxy: args.proxy.map(|name| name.0),
            verbose: args.verbose,
        })
    }

    fn resolve(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        match &self.proxy {
            Some(proxy) if cx.runtime().find(cx.element(), proxy).is_none() => {
                Err(SetupError::argument("PROXY", "does not name an element"))
            }
            _ => Ok(()),
        }
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        match &self.listener.address {
            // After a configuration change, so that a replaced element has handed over the connection.
            ListenAddress::Inherited(_) => cx.set_timer(0, cx.steady()),
            _ => self.listener.start(cx)?,
        }
        Ok(())
    }

    fn timer(&mut self, cx: &mut Context, timer: usize) {
        if timer == WRITE_TIMER {
            return self.continue_writes(cx);
        }
        let ListenAddress::Inherited(number) = self.listener.address else { return self.listener.retry(cx) };
        match cx.environment().connect(&format!("fd:{number}")) {
            Ok(stream) => self.open(cx, Connection::new(stream, GREETING)),
            Err(error) => {
                cx.log_between_packets(&format!("{}: {error}", declaration(cx)));
                cx.stop();
            }
        }
    }

    fn ready(&mut self, cx: &mut Context, descriptor: Descriptor) {
        if self.listener.is(descriptor) {
            if let Some(stream) = self.listener.accept(cx) {
                // A connection above the limit is closed at once.
                if self.connections.len() < MAX_CONNECTIONS {
                    self.open(cx, Connection::new(stream, GREETING));
                }
            }
            return;
        }
        let index = self.connections.iter().position(|connection| connection.descriptor() == descriptor);
        let Some(index) = index else { return cx.watch(descriptor, false, false) };
        let mut connection = self.connections.swap_remove(index);
        self.serve(cx, &mut connection);
        self.store_or_close(cx, connection);
    }

    fn inherit(&mut self, old: &mut ControlSocket, cx: &mut Context) {
        if self.listener.inherit(&mut old.listener, cx) {
            cx.clear_timer(0);
            for mut connection in core::mem::take(&mut old.connections) {
                if let Some((_, name)) = connection.long_write.take() {
                    let text =
                        format!("Write handler '{name}' error: the configuration was replaced meanwhile");
                    connection.line(code::HANDLER, &text, false);
                    connection.flush();
                }
                self.store_or_close(cx, connection);
            }
        }
    }

    fn cleanup(&mut self, _: &mut Context) {
        self.connections.drain(..).for_each(|mut connection| connection.flush());
        self.listener.stop();
    }
}

impl ControlSocket {
    /// The value of one of the socket's own handlers.
    fn own_handler(&self, name: &str) -> Option<String> {
        match (&self.listener.address, name) {
            (ListenAddress::Tcp { .. }, "port") => Some(self.listener.port()),
            (ListenAddress::Unix(path), "filename") => Some(path.clone()),
            _ => None,
        }
    }

    fn open(&mut self, cx: &Context, mut connection: Connection) {
        if self.verbose {
            let from = connection.peer().map_or_else(String::new, |peer| format!(" from {peer}"));
            let number = connection.descriptor().0;
            cx.log_between_packets(&format!("{}: opened connection {number}{from}", declaration(cx)));
        }
        connection.flush();
        self.store_or_close(cx, connection);
    }

    /// Keeps a connection, unless it is finished.
    fn store_or_close(&mut self, cx: &Context, connection: Connection) {
        let descriptor = connection.descriptor();
        if connection.is_finished() {
            cx.watch(descriptor, false, false);
            if self.verbose {
                cx.log_between_packets(&format!("{}: closed connection {}", declaration(cx), descriptor.0));
            }
            return;
        }
        let (read, write) = connection.wants();
        cx.watch(descriptor, read, write);
        self.connections.push(connection);
    }

    /// Reads, executes and answers commands.
    fn serve(&mut self, cx: &Context, connection: &mut Connection) {
        connection.fill();
        for _ in 0..MAX_COMMANDS {
            let Some(parsed) = connection.next() else { break };
            match parsed {
                Parsed::Command(_, command) => {
                    let changes = matches!(command, Command::Write { .. });
                    if let Err((code, text)) = self.execute(cx, connection, command) {
                        connection.line(code, &text, false);
                    }
                    // The configuration may have been replaced; the new one serves the remaining commands.
                    if changes {
                        break;
                    }
                }
                Parsed::Bad(_, code, text) | Parsed::TooBig(code, text) => {
                    connection.line(code, &text, false)
                }
                Parsed::Blank(_) | Parsed::Incomplete(_) => {}
            }
        }
        connection.flush();
    }

    /// Continues the writes that go on in steps, and serves the connections whose write is done.
    fn continue_writes(&mut self, cx: &Context) {
        for mut connection in core::mem::take(&mut self.connections) {
            if let Some((target, name)) = connection.long_write.take() {
                match cx.continue_write(&target) {
                    None => {
                        connection.long_write = Some((target, name));
                        cx.set_timer(WRITE_TIMER, cx.steady());
                    }
                    Some(result) => {
                        if let Err((code, text)) = answer_write(&mut connection, &name, result) {
                            connection.line(code, &text, false);
                        }
                        // A new configuration serves the commands that follow.
                        match target.element {
                            Some(_) => self.serve(cx, &mut connection),
                            None => connection.flush(),
                        }
                    }
                }
            }
            self.store_or_close(cx, connection);
        }
    }

    fn execute(&self, cx: &Context, connection: &mut Connection, command: Command) -> Result<(), ErrorReply> {
        match command {
            Command::Read { handler, data } => self.read(cx, connection, &handler, &data)?,
            Command::Write { handler, data } => self.write(cx, connection, &handler, data)?,
            Command::Check { handler, write } => {
                let found = self.find_handler(cx, &handler)?;
                if !found.supports(write) {
                    let can = if write { "writable" } else { "readable" };
                    return Err((code::NO_HANDLER, format!("Handler '{handler}' not {can}")));
                }
                if write && self.read_only {
                    return Err((code::PERMISSION, format!("Permission denied for '{handler}'")));
                }
                let kind = if write { "Write" } else { "Read" };
                connection.line(code::OK, &format!("{kind} handler '{handler}' OK"), false);
            }
            Command::Llrpc { name, data } => self.call(cx, connection, &name, &data)?,
            Command::Help => {
                for (number, line) in HELP.iter().enumerate() {
                    connection.line(code::OK, line, number + 1 < HELP.len());
                }
            }
            Command::Quit { alone } => {
                if !alone {
                    connection.line(code::SYNTAX, "Bad command syntax", false);
                }
                connection.line(code::OK, "Goodbye!", false);
                connection.close();
            }
        }
        Ok(())
    }

    fn read(
        &self,
        cx: &Context,
        connection: &mut Connection,
        name: &str,
        data: &str,
    ) -> Result<(), ErrorReply> {
        let found = self.find_handler(cx, name)?;
        if !found.supports(false) {
            return Err((code::PERMISSION, format!("Handler '{name}' write-only")));
        }
        let result = match found.own {
            Some(value) => Ok(value),
            None => cx.read_shards(&found.path, data, found.shard),
        };
        match result {
            Ok(value) => {
                connection.line(code::OK, &format!("Read handler '{name}' OK"), false);
                connection.data(value.as_bytes());
            }
            // Some missing handlers, and elements behind a proxy, are detected only by the call.
            Err(HandlerError::NoHandler(_)) => return Err(unknown(name)),
            Err(HandlerError::NoElement(element)) => return Err(no_element(&element)),
            Err(error) => {
                let text = format!("Read handler '{name}' error");
                connection.lines(code::UNSPECIFIED, &text, &error.to_string());
            }
        }
        Ok(())
    }

    fn write(
        &self,
        cx: &Context,
        connection: &mut Connection,
        name: &str,
        data: String,
    ) -> Result<(), ErrorReply> {
        let found = self.find_handler(cx, name)?;
        if !found.supports(true) {
            return Err((code::PERMISSION, format!("Handler '{name}' read-only")));
        }
        if self.read_only {
            return Err((code::PERMISSION, format!("Permission denied for '{name}'")));
        }
        if let Some(shard) = found.shard {
            let text = format!("Write to all shards: leave ‘shard{shard}/’ out of '{name}'");
            return Err((code::PERMISSION, text));
        }
        if cx.shard().count > 1 {
            let written = cx.write_shards(&found.path, &data);
            return answer_write(connection, name, written);
        }
        match cx.begin_write(&found.path, data) {
            Ok(Some(target)) => {
                connection.long_write = Some((target, name.into()));
                cx.set_timer(WRITE_TIMER, cx.steady());
                Ok(())
            }
            written => answer_write(connection, name, written.map(drop)),
        }
    }

    fn call(
        &self,
        cx: &Context,
        connection: &mut Connection,
        name: &str,
        data: &[u8],
    ) -> Result<(), ErrorReply> {
        let (element, number) = name.rsplit_once('#').unwrap_or(("", name));
        let call = Call::parse(number)
            .ok_or_else(|| (code::SYNTAX, format!("Syntax error in LLRPC name '{name}'")))?;
        let found = self.find_handler(cx, &format!("{element}.name"))?;
        if !call.is_remote() {
            return Err((code::UNIMPLEMENTED, format!("Cannot call LLRPC '{name}' remotely")));
        }
        if self.read_only {
            return Err((code::PERMISSION, format!("Permission denied for '{name}'")));
        }
        let size = call.size();
        if call.takes_data() && data.len() != size {
            return Err((code::LLRPC, format!("LLRPC '{name}' requires {size} bytes input data")));
        }
        let target = found.path.rsplit_once('.').map_or("", |(element, _)| element);
        let Some(answer) = call.perform(cx, target, data) else {
            return Err((code::LLRPC, format!("LLRPC '{name}' error: Invalid argument")));
        };
        connection.line(code::OK, &format!("LLRPC '{name}' OK"), false);
        connection.data(if call.gives_data() { &answer } else { &[] });
        Ok(())
    }

    /// Finds a handler by the name that a client uses.
    fn find_handler(&self, cx: &Context, name: &str) -> Result<Found, ErrorReply> {
        let path = name.strip_prefix("0.").or_else(|| name.strip_prefix('.')).unwrap_or(name);
        // An element in a compound element of that name comes first.
        let is_element = path
            .split_once('.')
            .is_some_and(|(element, _)| cx.runtime().find(cx.element(), element).is_some());
        let (shard, path) = if is_element { (None, path) } else { cx.shard().strip_prefix(path) };
        // A path without an element is the router's, never relative to the socket.
        let rooted = if path.contains('.') { path.to_string() } else { format!(".{path}") };
        if let Some(proxy) = &self.proxy {
            let path_there = format!("{proxy}.{path}");
            let element = cx.runtime().find(cx.element(), proxy);
            let mut listed = cx.runtime().handlers(element);
            // A proxy is asked, because it passes on handlers of others. Other elements have only their own.
            if element.is_some_and(|element| cx.runtime().class_name(element) == "HandlerProxy") {
                listed.clear();
            } else {
                listed.retain(|info| info.name == path);
                if listed.is_empty() {
                    return Err((code::NO_HANDLER, format!("No proxied handler named '{name}'")));
                }
            }
            return Ok(Found { path: path_there, listed, own: None, shard });
        }
        let target = cx.runtime().resolve(cx.element(), &rooted).map_err(|error| match error {
            HandlerError::NoElement(element) => no_element(&element),
            _ => unknown(name),
        })?;
        let own = (target.element == Some(cx.element())).then(|| self.own_handler(&target.handler)).flatten();
        let mut listed = cx.runtime().handlers(target.element);
        listed.retain(|info| info.name == target.handler);
        if listed.iter().any(|info| info.hidden) || (listed.is_empty() && target.element.is_none()) {
            return Err(unknown(name));
        }
        // A read tells whether an element has an unlisted handler.
        let is_absent = || matches!(cx.read_handler(&rooted, ""), Err(HandlerError::NoHandler(_)));
        if listed.is_empty() && own.is_none() && (target.element == Some(cx.element()) || is_absent()) {
            return Err(unknown(name));
        }
        Ok(Found { path: rooted, listed, own, shard })
    }
}

/// Queues the reply to a write.
fn answer_write(
    connection: &mut Connection,
    name: &str,
    result: Result<(), HandlerError>,
) -> Result<(), ErrorReply> {
    match result {
        Ok(()) => connection.line(code::OK, &format!("Write handler '{name}' OK"), false),
        Err(HandlerError::WrittenWithWarnings(warnings)) => {
            connection.lines(code::WARNING, &format!("Write handler '{name}' OK with warnings"), &warnings);
        }
        Err(HandlerError::NoHandler(_)) => return Err(unknown(name)),
        Err(HandlerError::NoElement(element)) => return Err(no_element(&element)),
        Err(error) => {
            let text = format!("Write handler '{name}' error");
            connection.lines(code::HANDLER, &text, &error.to_string());
        }
    }
    Ok(())
}

fn no_element(name: &str) -> ErrorReply {
    (code::NO_ELEMENT, format!("No element named '{name}'"))
}

fn unknown(name: &str) -> ErrorReply {
    (code::NO_HANDLER, format!("No handler named '{name}'"))
}

/// What is known about a handler before it is called.
struct Found {
    path: String,
    /// Its descriptions; empty if it is not listed but may exist.
    listed: Vec<HandlerInfo>,
    /// The value if it is one of the socket's own handlers, which can't be called while it serves.
    own: Option<String>,
    /// The shard that is asked, if it is one.
    shard: Option<u32>,
}

impl Found {
    fn supports(&self, write: bool) -> bool {
        let fits = |info: &HandlerInfo| (info.kind == HandlerKind::Write) == write;
        match &self.own {
            Some(_) => !write,
            None => self.listed.is_empty() || self.listed.iter().any(fits),
        }
    }
}
