//! Serves the requests in the mailbox.

use crate::configuration::{Configuration, compile, file, with_options};
use crate::diagnostics;
use crate::engine::{Engine, LongRequest, LongWork, Staged};
use crate::environment::BoxEnvironment;
use crate::error::EngineError;
use crate::flow_states;
use crate::own_writes::for_mailbox;
use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use boundary::limits::{MAX_CORES, MAX_PREPARED_WRITES};
use boundary::{
    DecodeError, Event, Message, RefusedWrite, Reply, Request, SpreadRange, Stats, decode_answers,
};
use click_lang::steps::complete;
use click_lang::{Diagnostic, RewriteError};
use core::fmt;
use element::{HandlerError, Reason, Shard};
use router::BegunWrite;

/// Why a request failed.
enum RequestError {
    /// The request can't be decoded.
    Decode(DecodeError),
    /// The box has no configuration of this name; the empty name is that of the main one.
    NoConfiguration(String),
    /// The value of a handler is not UTF-8.
    NotText,
    /// No further write can be prepared.
    TooManyPrepared,
    /// It cannot become this shard.
    Shard,
    /// No configuration is prepared.
    NothingStaged,
    /// The text can't give an element other arguments.
    Rewrite(RewriteError),
    /// A handler can't be called, or rejected the call.
    Handler(HandlerError),
    /// The configuration was rejected.
    Rejected(Vec<boundary::Diagnostic>),
}

impl RequestError {
    /// The reply to the request of this number.
    fn encode(&self, number: u32) -> boundary::Message {
        match self {
            Self::Rejected(found) => Reply::Rejected(&boundary::Diagnostic::encode(found)).encode(number),
            Self::NoConfiguration(_)
            | Self::Handler(HandlerError::NoElement(_) | HandlerError::NoHandler(_)) => {
                Reply::Missing(self.to_string().as_bytes()).encode(number)
            }
            Self::Decode(_)
            | Self::NotText
            | Self::TooManyPrepared
            | Self::Shard
            | Self::NothingStaged
            | Self::Rewrite(_)
            | Self::Handler(_) => Reply::Failed(self.to_string().as_bytes()).encode(number),
        }
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Decode(error) => write!(f, "invalid request: {error}"),
            Self::NoConfiguration(name) if name.is_empty() => {
                f.write_str("the box has no main configuration")
            }
            Self::NoConfiguration(name) => write!(f, "the box has no configuration ‘{name}’"),
            Self::NotText => f.write_str("the value of a handler must be UTF-8 text"),
            Self::TooManyPrepared => {
                write!(f, "at most {MAX_PREPARED_WRITES} writes wait for an installation")
            }
            Self::Shard => f.write_str("the box runs a configuration, or the shard does not exist"),
            Self::NothingStaged => f.write_str("no configuration was prepared"),
            Self::Rewrite(error) => error.fmt(f),
            Self::Handler(error) => error.fmt(f),
            Self::Rejected(_) => f.write_str("the configuration was rejected"),
        }
    }
}

impl From<HandlerError> for RequestError {
    fn from(error: HandlerError) -> RequestError {
        RequestError::Handler(error)
    }
}

impl Engine {
    /// Serves pending requests. Returns whether there were any.
    pub(crate) fn serve(&mut self) -> Result<bool, EngineError> {
        let mut served = self.continue_long_request();
        // Requests are executed in order, so those behind a long one wait for it.
        while self.long_request.is_none()
            && let Some(message) = self.inbox.poll(&mut self.requests)?
        {
            served = true;
            // It may have been told so just before the request.
            self.renew();
            let number = message.number;
            let answer = self.answer(message);
            if let Some(answer) = answer.transpose() {
                self.reply(number, &answer);
            }
        }
        if self.requests.release() {
            self.context.platform.ring_mailbox();
        }
        Ok(served)
    }

    fn reply(&mut self, number: u32, answer: &Result<Vec<u8>, RequestError>) {
        self.outbox.push(match answer {
            Ok(value) => Reply::Done(value).encode(number),
            Err(error) => error.encode(number),
        });
    }

    /// Writes a handler. Returns nothing if the write goes on in steps; then the reply follows later.
    fn write(
        &mut self,
        (number, name, handler): (u32, &str, &str),
        value: Vec<u8>,
    ) -> Result<Option<Vec<u8>>, RequestError> {
        let value = String::from_utf8(value).map_err(|_| RequestError::NotText)?;
        match self.configuration(name)?.router.begin_write(handler, value)? {
            BegunWrite::Done(written) => Ok(Some(for_mailbox(written).encode())),
            BegunWrite::Long(write) => {
                let (name, work) = (name.into(), LongWork::Write(write));
                self.long_request = Some(LongRequest { number, name, work });
                Ok(None)
            }
        }
    }

    /// Continues a request that goes on in steps, and replies when it is done. Returns whether there is one.
    #[inline]
    fn continue_long_request(&mut self) -> bool {
        let Some(mut request) = self.long_request.take() else { return false };
        match self.continue_request(&mut request) {
            Some(answer) => self.reply(request.number, &answer),
            None => self.long_request = Some(request),
        }
        true
    }

    #[cold]
    #[inline(never)]
    fn continue_request(&mut self, request: &mut LongRequest) -> Option<Result<Vec<u8>, RequestError>> {
        let LongRequest { name, work, .. } = request;
        let found = self.configurations.iter_mut().find(|configuration| configuration.name == *name);
        let Some(configuration) = found else {
            return Some(Err(RequestError::NoConfiguration(name.clone())));
        };
        match work {
            LongWork::Write(write) => {
                let result = configuration.router.continue_write(write)?;
                Some(result.map(|written| for_mailbox(written).encode()).map_err(RequestError::from))
            }
            LongWork::Swap(swap) => {
                let warnings = configuration.continue_swap(&self.context, swap)?;
                if warnings.is_ok() && configuration.router.forget_own_writes() {
                    self.context.events.borrow_mut().send(&Event::OwnWritesGone { name: name.as_bytes() });
                }
                Some(warnings.map_err(rejected(name)).map(|warnings| self.installed(name, &warnings)))
            }
            LongWork::Stage(swap) => {
                let staged = configuration.continue_to_stage(&self.context, swap)?;
                Some(staged.map_err(rejected(name)).map(|(successor, warnings)| {
                    self.staged = Some(Staged::Successor(name.clone(), successor));
                    boundary::Diagnostic::encode(&diagnostics::for_mailbox(&warnings, file(name)))
                }))
            }
        }
    }

    /// Sends replies and events, as far as there is room.
    pub(crate) fn flush(&mut self) -> Result<(), EngineError> {
        let replied = !self.outbox.is_empty() && self.outbox.flush(&mut self.replies)?;
        if self.context.events.borrow_mut().flush()? | replied {
            self.context.platform.ring_mailbox();
        }
        Ok(())
    }

    /// The answer to a request; `None` if it follows later.
    #[cold]
    #[inline(never)]
    fn answer(&mut self, message: Message) -> Result<Option<Vec<u8>>, RequestError> {
        let answer = match Request::decode(&message).map_err(RequestError::Decode)? {
            Request::Install { name, configuration } => {
                return self.install(message.number, name, self.or_default(configuration));
            }
            Request::Stage { name, configuration } => {
                return self.stage(message.number, name, self.or_default(configuration));
            }
            Request::Commit => self.commit(),
            Request::Abort => {
                self.staged = None;
                Ok(Vec::new())
            }
            Request::Shard { index, count } => {
                if !self.configurations.is_empty() || index >= count || count as usize > MAX_CORES {
                    return Err(RequestError::Shard);
                }
                self.context.shard.set(Shard { index, count });
                Ok(Vec::new())
            }
            Request::Ranges => Ok(SpreadRange::encode(&self.context.spread.borrow_mut().fix())),
            Request::Merge { name, handler, answers } => {
                let answers = decode_answers(answers).map_err(RequestError::Decode)?;
                let merge = self.configuration(name)?.router.merge(handler)?;
                let answers: Vec<String> = answers.into_iter().map(String::from).collect();
                Ok(merge.answer(&answers).into_bytes())
            }
            Request::Destinations { names } => {
                *self.context.destinations.borrow_mut() = names.lines().map(String::from).collect();
                Ok(Vec::new())
            }
            Request::Parameters { values } => {
                let values = values.lines().filter_map(|line| line.split_once('='));
                let values = values.map(|(name, value)| (name.into(), value.into()));
                *self.context.parameters.borrow_mut() = values.collect();
                Ok(Vec::new())
            }
            Request::Remove { name } => {
                let index = self.configurations.iter().position(|it| it.name == name);
                let index = index.ok_or_else(|| RequestError::NoConfiguration(name.into()))?;
                let removed = self.configurations.remove(index).router.account();
                self.past.add(&removed);
                self.past.add_lost(Reason::REMOVED.name().into(), removed.waiting);
                self.publisher.past.add_account(&removed);
                self.publisher.past.add_lost(Reason::REMOVED, removed.waiting);
                self.publish_account();
                Ok(Vec::new())
            }
            Request::Read { name, handler, argument } => {
                Ok(self.configuration(name)?.router.read(handler, text(argument)?)?.into_bytes())
            }
            Request::Write { name, handler, value } => {
                let (number, name, handler) = (message.number, String::from(name), String::from(handler));
                // The value is the end of the message. It may be long, and is not copied.
                let start = message.payload.len().saturating_sub(value.len());
                let mut value = message.payload;
                value.drain(..start);
                return self.write((number, &name, &handler), value);
            }
            Request::Prepare { name, handler, value } => match self.prepared.add(name, handler, text(value)?)
            {
                true => Ok(Vec::new()),
                false => Err(RequestError::TooManyPrepared),
            },
            Request::Prepared => Ok(RefusedWrite::encode(&self.prepared.take_refused())),
            Request::Stats => Ok(self.stats().encode()),
            Request::File { name, contents } => {
                self.context.files.borrow_mut().insert(name.into(), Rc::from(contents));
                Ok(Vec::new())
            }
            Request::Rewrite { configuration, element, arguments } => {
                let text = self.or_default(configuration);
                let text = complete(with_options(&self.context, file(""), async |options| {
                    click_lang::rewrite(text, options, element, arguments)
                }));
                Ok(text.map_err(RequestError::Rewrite)?.into_bytes())
            }
            Request::Check { configuration } => Ok(self.check(self.or_default(configuration))),
            Request::ListFlows { position, most, range } => {
                Ok(flow_states::list(self, position, most, range))
            }
            Request::ExportFlows { age, groups } => {
                flow_states::export(self, age, groups).map_err(RequestError::Decode)
            }
            Request::ImportFlows { states } => {
                flow_states::import(self, states).map_err(RequestError::Decode)
            }
        };
        answer.map(Some)
    }

    /// The text, or that of the image if it is empty.
    fn or_default<'a>(&self, text: &'a str) -> &'a str {
        if text.trim().is_empty() { self.default_configuration } else { text }
    }

    fn configuration(&mut self, name: &str) -> Result<&mut Configuration, RequestError> {
        let found = self.configurations.iter_mut().find(|configuration| configuration.name == name);
        found.ok_or_else(|| RequestError::NoConfiguration(name.into()))
    }

    /// Installs a configuration, or begins to replace the one that runs. Returns nothing if that goes on in steps; then the
    /// reply follows later.
    #[cold]
    fn install(&mut self, number: u32, name: &str, text: &str) -> Result<Option<Vec<u8>>, RequestError> {
        let running = self.configurations.iter().find(|configuration| configuration.name == name);
        let Some(running) = running else {
            let made = Configuration::new(&self.context, name, text);
            let (made, warnings) = made.map_err(rejected(name))?;
            self.configurations.push(made);
            return Ok(Some(self.installed(name, &warnings)));
        };
        let work = LongWork::Swap(running.begin_swap(&self.context, text));
        let mut request = LongRequest { number, name: name.into(), work };
        // A short one is done at once.
        let answer = self.continue_request(&mut request);
        if answer.is_none() {
            self.long_request = Some(request);
        }
        answer.transpose()
    }

    /// Prepares a configuration, or begins to. Returns nothing if that goes on in steps; then the reply follows later.
    #[cold]
    fn stage(&mut self, number: u32, name: &str, text: &str) -> Result<Option<Vec<u8>>, RequestError> {
        self.staged = None;
        let running = self.configurations.iter().find(|configuration| configuration.name == name);
        let Some(running) = running else {
            let made = Configuration::new(&self.context, name, text);
            let (made, warnings) = made.map_err(rejected(name))?;
            self.staged = Some(Staged::New(Box::new(made)));
            return Ok(Some(boundary::Diagnostic::encode(&diagnostics::for_mailbox(&warnings, file(name)))));
        };
        let work = LongWork::Stage(running.begin_swap(&self.context, text));
        self.long_request = Some(LongRequest { number, name: name.into(), work });
        Ok(None)
    }

    /// Lets the prepared configuration take over.
    #[cold]
    fn commit(&mut self) -> Result<Vec<u8>, RequestError> {
        let name = match self.staged.take() {
            None => return Err(RequestError::NothingStaged),
            Some(Staged::New(made)) => {
                let name = made.name.clone();
                self.configurations.push(*made);
                name
            }
            Some(Staged::Successor(name, successor)) => {
                let configuration = self.configuration(&name)?;
                configuration.router.switch(successor);
                if configuration.router.forget_own_writes() {
                    self.context.events.borrow_mut().send(&Event::OwnWritesGone { name: name.as_bytes() });
                }
                name
            }
        };
        self.installed(&name, &[]);
        Ok(Vec::new())
    }

    /// Does what follows an installation. Returns the answer.
    fn installed(&mut self, name: &str, warnings: &[Diagnostic]) -> Vec<u8> {
        if let Some(installed) = self.configurations.iter_mut().find(|installed| installed.name == name) {
            self.prepared.execute(name, &mut installed.router);
        }
        self.publish_account();
        boundary::Diagnostic::encode(&diagnostics::for_mailbox(warnings, file(name)))
    }

    #[cold]
    fn check(&self, text: &str) -> Vec<u8> {
        let compiled = compile(&self.context, file(""), text);
        let environment = Rc::new(BoxEnvironment::new(&self.context, ""));
        let shard = self.context.shard.get();
        let found = router::check_for_shard(compiled, self.context.registry, environment, shard);
        boundary::Diagnostic::encode(&diagnostics::for_mailbox(&found, file("")))
    }

    #[cold]
    fn stats(&self) -> Stats {
        let heap = self.context.platform.heap_use();
        let (drops, account) = self.packet_account();
        Stats {
            busy_cycles: self.busy_cycles,
            heap_used: heap.used as u64,
            heap_peak: heap.peak as u64,
            lost_events: self.context.events.borrow().lost(),
            ports: self.context.ports.iter().map(|port| port.stats()).collect(),
            drops,
            account,
        }
    }
}

/// The error of a configuration with these diagnostics.
fn rejected(name: &str) -> impl Fn(Vec<Diagnostic>) -> RequestError + '_ {
    move |found| RequestError::Rejected(diagnostics::for_mailbox(&found, file(name)))
}

/// Handlers take text.
fn text(bytes: &[u8]) -> Result<&str, RequestError> {
    core::str::from_utf8(bytes).map_err(|_| RequestError::NotText)
}
