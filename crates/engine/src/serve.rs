//! Serves the requests in the mailbox.

use crate::configuration::{Configuration, compile, file};
use crate::diagnostics;
use crate::engine::Engine;
use crate::environment::BoxEnvironment;
use crate::error::EngineError;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use boundary::{Reply, Request, Stats};
use click_lang::Diagnostic;
use element::{HandlerError, Reason};

/// Why a request was not done.
enum RequestError {
    /// It failed, for this reason.
    Failed(String),
    /// The requested object does not exist.
    Missing(String),
    /// The configuration was rejected.
    Rejected(Vec<boundary::Diagnostic>),
}

impl RequestError {
    fn no_configuration(name: &str) -> RequestError {
        RequestError::Missing(match name {
            "" => "the box has no main configuration".into(),
            _ => format!("the box has no configuration ‘{name}’"),
        })
    }
}

impl From<Vec<Diagnostic>> for RequestError {
    fn from(found: Vec<Diagnostic>) -> RequestError {
        RequestError::Failed(diagnostics::text(&found))
    }
}

impl From<HandlerError> for RequestError {
    fn from(error: HandlerError) -> RequestError {
        match error {
            HandlerError::NoElement(_) | HandlerError::NoHandler(_) => {
                RequestError::Missing(error.to_string())
            }
            other => RequestError::Failed(other.to_string()),
        }
    }
}

impl Engine {
    /// Serves pending requests. Returns whether there were any.
    pub(crate) fn serve(&mut self) -> Result<bool, EngineError> {
        let mut served = false;
        while let Some(message) = self.inbox.poll(&mut self.requests)? {
            let answer = match Request::decode(&message) {
                Ok(request) => self.answer(&request),
                Err(error) => Err(RequestError::Failed(format!("invalid request: {error}"))),
            };
            let reply = match &answer {
                Ok(value) => Reply::Done(value).encode(message.number),
                Err(RequestError::Failed(reason)) => Reply::Failed(reason.as_bytes()).encode(message.number),
                Err(RequestError::Missing(reason)) => {
                    Reply::Missing(reason.as_bytes()).encode(message.number)
                }
                Err(RequestError::Rejected(found)) => {
                    Reply::Rejected(&boundary::Diagnostic::encode(found)).encode(message.number)
                }
            };
            self.outbox.push(reply);
            served = true;
        }
        if self.requests.release() {
            self.context.platform.ring_mailbox();
        }
        Ok(served)
    }

    /// Sends replies and events, as far as there is room.
    pub(crate) fn flush(&mut self) -> Result<(), EngineError> {
        let replied = !self.outbox.is_empty() && self.outbox.flush(&mut self.replies)?;
        if self.context.events.borrow_mut().flush()? | replied {
            self.context.platform.ring_mailbox();
        }
        Ok(())
    }

    fn answer(&mut self, request: &Request) -> Result<Vec<u8>, RequestError> {
        match *request {
            Request::Install { name, configuration } => self.install(name, configuration),
            Request::Remove { name } => {
                let place = self.configurations.iter().position(|it| it.name == name);
                let place = place.ok_or_else(|| RequestError::no_configuration(name))?;
                self.configurations.remove(place).add_drops(&mut self.drops);
                Ok(Vec::new())
            }
            Request::Read { name, handler, argument } => {
                Ok(self.configuration(name)?.router.read(handler, text(argument)?)?.into_bytes())
            }
            Request::Write { name, handler, value } => {
                self.configuration(name)?.router.write(handler, text(value)?)?;
                Ok(Vec::new())
            }
            Request::Stats => Ok(self.stats().encode()),
            Request::File { name, contents } => {
                self.context.files.borrow_mut().insert(name.into(), Rc::from(contents));
                Ok(Vec::new())
            }
            Request::Check { configuration } => Ok(self.check(configuration)),
        }
    }

    fn configuration(&mut self, name: &str) -> Result<&mut Configuration, RequestError> {
        let found = self.configurations.iter_mut().find(|configuration| configuration.name == name);
        found.ok_or_else(|| RequestError::no_configuration(name))
    }

    fn install(&mut self, name: &str, text: &str) -> Result<Vec<u8>, RequestError> {
        let running = self.configurations.iter_mut().find(|configuration| configuration.name == name);
        let rejected =
            |found: Vec<Diagnostic>| RequestError::Rejected(diagnostics::for_mailbox(&found, file(name)));
        let warnings = match running {
            Some(running) => running.swap(&self.context, text, &mut self.drops).map_err(rejected)?,
            None => {
                let (made, warnings) = Configuration::make(&self.context, name, text).map_err(rejected)?;
                self.configurations.push(made);
                warnings
            }
        };
        Ok(boundary::Diagnostic::encode(&diagnostics::for_mailbox(&warnings, file(name))))
    }

    fn check(&self, text: &str) -> Vec<u8> {
        let compiled = compile(&self.context, file(""), text);
        let found =
            router::check(compiled, self.context.registry, Rc::new(BoxEnvironment::new(&self.context, "")));
        boundary::Diagnostic::encode(&diagnostics::for_mailbox(&found, file("")))
    }

    fn stats(&self) -> Stats {
        let heap = self.context.platform.heap_use();
        let mut drops = self.drops.clone();
        self.configurations.iter().for_each(|configuration| configuration.add_drops(&mut drops));
        let no_buffer: u64 = self.context.ports.iter().map(|port| port.no_buffer()).sum();
        if no_buffer > 0 {
            *drops.entry(Reason::NO_BUFFER.name().into()).or_default() += no_buffer;
        }
        Stats {
            busy_cycles: self.busy_cycles,
            heap_used: heap.used as u64,
            heap_peak: heap.peak as u64,
            lost_events: self.context.events.borrow().lost(),
            ports: self.context.ports.iter().map(|port| port.stats()).collect(),
            drops: drops.into_iter().map(|(reason, count)| (reason.to_string(), count)).collect(),
        }
    }
}

/// Handlers take text.
fn text(bytes: &[u8]) -> Result<&str, RequestError> {
    core::str::from_utf8(bytes)
        .map_err(|_| RequestError::Failed("the value of a handler must be UTF-8 text".into()))
}
