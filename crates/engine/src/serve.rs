//! The mailbox: requests, and what becomes of them.

use crate::configuration::{Configuration, compile, file, registry};
use crate::diagnostics::{self, to_wire};
use crate::engine::{Engine, EngineError};
use crate::environment::Surroundings;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use boundary::{Reply, Request, Stats};
use click_lang::Diagnostic;
use element::HandlerError;

/// Why a request isn't done.
enum Refusal {
    /// It can't be.
    Failed(String),
    /// There is no such thing.
    Missing(String),
    /// The configuration can't run.
    Rejected(Vec<boundary::Diagnostic>),
}

impl Refusal {
    fn no_configuration(name: &str) -> Refusal {
        Refusal::Missing(match name {
            "" => "the box has no main configuration".into(),
            _ => format!("the box has no configuration ‘{name}’"),
        })
    }
}

impl From<Vec<Diagnostic>> for Refusal {
    fn from(diagnostics: Vec<Diagnostic>) -> Refusal {
        Refusal::Failed(diagnostics::text(&diagnostics))
    }
}

impl From<HandlerError> for Refusal {
    fn from(error: HandlerError) -> Refusal {
        match error {
            HandlerError::NoElement(_) | HandlerError::NoHandler(_) => Refusal::Missing(error.to_string()),
            other => Refusal::Failed(other.to_string()),
        }
    }
}

impl Engine {
    /// Answers the requests that have come; whether there were any.
    pub(crate) fn serve(&mut self) -> Result<bool, EngineError> {
        let mut served = false;
        while let Some(message) = self.inbox.poll(&mut self.requests)? {
            let answer = match Request::decode(&message) {
                Ok(request) => self.answer(&request),
                Err(error) => Err(Refusal::Failed(format!("a request that makes no sense: {error}"))),
            };
            let reply = match &answer {
                Ok(value) => Reply::Done(value).encode(message.number),
                Err(Refusal::Failed(reason)) => Reply::Failed(reason.as_bytes()).encode(message.number),
                Err(Refusal::Missing(reason)) => Reply::Missing(reason.as_bytes()).encode(message.number),
                Err(Refusal::Rejected(found)) => {
                    Reply::Rejected(&boundary::Diagnostic::encode(found)).encode(message.number)
                }
            };
            self.outbox.push(reply);
            served = true;
        }
        if self.requests.release() {
            self.world.ground.ring_host();
        }
        Ok(served)
    }

    /// Hands over replies and events, as far as there is room.
    pub(crate) fn flush(&mut self) -> Result<(), EngineError> {
        let replied = !self.outbox.is_empty() && self.outbox.flush(&mut self.replies)?;
        if self.world.events.borrow_mut().flush()? | replied {
            self.world.ground.ring_host();
        }
        Ok(())
    }

    fn answer(&mut self, request: &Request) -> Result<Vec<u8>, Refusal> {
        match *request {
            Request::Install { name, configuration } => self.install(name, configuration),
            Request::Remove { name } => {
                let place = self.configurations.iter().position(|it| it.name == name);
                let place = place.ok_or_else(|| Refusal::no_configuration(name))?;
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
                self.world.files.borrow_mut().insert(name.into(), Rc::from(contents));
                Ok(Vec::new())
            }
            Request::Rehearse { name, configuration, seconds, batch } => {
                Ok(self.rehearse(name, configuration, seconds, batch)?)
            }
            Request::Check { configuration } => Ok(self.check(configuration)),
        }
    }

    fn configuration(&mut self, name: &str) -> Result<&mut Configuration, Refusal> {
        let found = self.configurations.iter_mut().find(|configuration| configuration.name == name);
        found.ok_or_else(|| Refusal::no_configuration(name))
    }

    fn install(&mut self, name: &str, text: &str) -> Result<Vec<u8>, Refusal> {
        let running = self.configurations.iter_mut().find(|configuration| configuration.name == name);
        let rejected = |found: Vec<Diagnostic>| Refusal::Rejected(to_wire(&found, file(name)));
        let warnings = match running {
            Some(running) => running.swap(&self.world, text, &mut self.drops).map_err(rejected)?,
            None => {
                let (made, warnings) = Configuration::make(&self.world, name, text).map_err(rejected)?;
                self.configurations.push(made);
                warnings
            }
        };
        Ok(boundary::Diagnostic::encode(&to_wire(&warnings, file(name))))
    }

    fn check(&self, text: &str) -> Vec<u8> {
        let compiled = compile(&self.world, file(""), text);
        let found = router::check(compiled, registry(), Rc::new(Surroundings::new(&self.world, "")));
        boundary::Diagnostic::encode(&to_wire(&found, file("")))
    }

    fn stats(&self) -> Stats {
        let heap = self.world.ground.heap_use();
        let mut drops = self.drops.clone();
        self.configurations.iter().for_each(|configuration| configuration.add_drops(&mut drops));
        let no_buffer: u64 = self.world.ports.iter().map(|port| port.no_buffer()).sum();
        if no_buffer > 0 {
            *drops.entry("no_buffer").or_default() += no_buffer;
        }
        Stats {
            busy_cycles: self.busy_cycles,
            heap_used: heap.used as u64,
            heap_peak: heap.peak as u64,
            lost_events: self.world.events.borrow().lost(),
            ports: self.world.ports.iter().map(|port| port.stats()).collect(),
            drops: drops.into_iter().map(|(reason, count)| (reason.to_string(), count)).collect(),
        }
    }
}

/// Handlers take text.
fn text(bytes: &[u8]) -> Result<&str, Refusal> {
    core::str::from_utf8(bytes).map_err(|_| Refusal::Failed("a handler takes UTF-8 text".into()))
}
