//! Checks configurations, each in a box of its own that is then discarded.

use super::of_service::OfService;
use super::state::Fabric;
use crate::boxes::report;
use crate::diagnostics::{diagnostics, refusal, remarks};
use crate::error::OperationError;
use boundary::limits::MAX_PORTS;
use boundary::{CrashCause, Request};
use model::{CoreCount, Diagnostic, ImageDigest, Severity, escape, with_causes};
use protocol::fabric::{CheckLimit, CheckLimits, CheckOutcome, Configuration, RewriteReply};
use sandbox::{CallError, Sandbox};
use std::io;
use std::time::Instant;

/// A box that checks, and ends when it is dropped.
struct Checker {
    sandbox: Sandbox,
    start: Instant,
    /// The limits that apply.
    limits: CheckLimits,
    /// Whether a text or a file may take more than half of its heap. A box refuses such requests, and ends.
    is_crowded: bool,
}

/// Memory of a checking box that is not heap: an upper bound.
const MAX_OVERHEAD: u64 = 512 << 10;

impl Checker {
    /// Starts a box for the check of a configuration.
    fn start(
        fabric: &Fabric,
        configuration: &Configuration,
        (ports, image): (usize, Option<&ImageDigest>),
        limits: CheckLimits,
    ) -> Result<Self, OperationError> {
        let limits = limits.bounded();
        let start = Instant::now();
        let memory = usize::try_from(limits.memory).unwrap_or(usize::MAX);
        let files = configuration.files.iter().map(|file| file.contents.0.len());
        let longest = files.fold(configuration.text.len(), usize::max);
        let is_crowded = 2 * longest as u64 > limits.memory.saturating_sub(MAX_OVERHEAD);
        let sandbox = fabric.0.factory.make_checker(ports, memory, image)?;
        Ok(Self { sandbox, start, limits, is_crowded })
    }

    /// Sends the box a request, which has the time that is left.
    fn call(&mut self, request: &Request) -> Result<Vec<u8>, CallError> {
        let left = self.limits.time.saturating_sub(self.start.elapsed());
        self.sandbox.call(request, left)
    }

    /// Gives the box the files of a configuration, and what it knows as an instance of a service.
    fn ship(&mut self, configuration: &Configuration) -> Result<(), CallError> {
        OfService::new(configuration).requests().try_for_each(|request| self.call(&request).map(drop))?;
        configuration.files.iter().try_for_each(|file| {
            self.call(&Request::File { name: &file.name, contents: &file.contents.0 }).map(drop)
        })
    }

    /// The first of these ports that a configuration does not use. It is installed for this, and each port is given to another
    /// configuration, which a box refuses if the port is used.
    fn unused(&mut self, text: &str, ports: &[u8]) -> Result<Option<u8>, CallError> {
        if ports.is_empty() {
            return Ok(None);
        }
        self.call(&Request::Install { name: "", configuration: text })?;
        for port in ports {
            let other = format!("FromDevice({port}) -> ToDevice({port})");
            match self.call(&Request::Install { name: "unused", configuration: &other }) {
                Ok(_) => return Ok(Some(*port)),
                Err(CallError::Rejected(_) | CallError::Refused(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// The limit that a failed request exceeded, if that is why it failed.
    fn exceeded(&self, error: &CallError) -> Option<CheckLimit> {
        match (error, self.sandbox.state()) {
            (CallError::TimedOut, _) => Some(CheckLimit::Time),
            (CallError::Ended, sandbox::State::Ended(sandbox::ExitStatus::Crashed(crash)))
                if crash.cause == CrashCause::OutOfMemory || self.is_crowded =>
            {
                Some(CheckLimit::Memory)
            }
            _ => None,
        }
    }

    /// Describes why a request failed that exceeded a limit.
    fn excess(&self, limit: CheckLimit) -> String {
        match limit {
            CheckLimit::Time => format!("it took longer than {} s", self.limits.time.as_secs_f64()),
            CheckLimit::Memory => {
                format!("it needed more than {} of memory", model::Size(self.limits.memory))
            }
        }
    }

    /// The error for a configuration that could not be rewritten.
    fn rewrite_error(&self, error: &CallError) -> OperationError {
        let cause = match self.exceeded(error) {
            Some(limit) => self.excess(limit),
            None => with_causes(error),
        };
        OperationError::system("rewrite the configuration", io::Error::other(cause))
    }
}

impl Fabric {
    /// The text of a configuration in which elements have other arguments.
    pub(crate) fn rewrite(
        &self,
        configuration: &Configuration,
        changes: &[(String, String)],
        limits: Option<CheckLimits>,
        image: Option<&ImageDigest>,
    ) -> Result<RewriteReply, OperationError> {
        let _inside = self.0.checks.enter();
        let mut checker =
            Checker::start(self, configuration, (MAX_PORTS, image), limits.unwrap_or_default())?;
        checker.ship(configuration).map_err(|error| checker.rewrite_error(&error))?;
        let mut reply = RewriteReply { text: configuration.text.clone(), refused: Vec::new() };
        for (element, arguments) in changes {
            let request = Request::Rewrite { configuration: &reply.text, element, arguments };
            match checker.call(&request) {
                Ok(text) => reply.text = String::from_utf8_lossy(&text).into_owned(),
                Err(CallError::Refused(reason)) => {
                    reply.refused.push((element.clone(), escape::text(reason.as_str().as_bytes())));
                }
                Err(error) => return Err(checker.rewrite_error(&error)),
            }
        }
        Ok(reply)
    }

    /// A box's diagnostics of a configuration for a box with this number of ports and cores, which must use these `faces`.
    pub(crate) fn check(
        &self,
        configuration: &Configuration,
        (ports, cores): (usize, CoreCount),
        faces: &[u8],
        limits: Option<CheckLimits>,
        image: Option<&ImageDigest>,
    ) -> Result<CheckOutcome, OperationError> {
        let _inside = self.0.checks.enter();
        let mut checker = Checker::start(self, configuration, (ports, image), limits.unwrap_or_default())?;
        let request = Request::Check { configuration: &configuration.text };
        let shard = Request::Shard { index: 0, count: cores.into() };
        let numbered = if cores.is_one() { Ok(Vec::new()) } else { checker.call(&shard) };
        let reply = numbered.and_then(|_| checker.ship(configuration));
        let reply = reply.and_then(|()| checker.call(&request));
        // What is wrong with it is said before what it lacks.
        let found = reply.map(|reply| remarks(&reply)).and_then(|found| {
            let is_wrong = found.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
            let unused = if is_wrong { None } else { checker.unused(&configuration.text, faces)? };
            Ok(found.into_iter().chain(unused.map(unused_face)).collect())
        });
        let error = match found {
            Ok(found) => return Ok(CheckOutcome::Accepted(found)),
            Err(error) => error,
        };
        Ok(match (checker.exceeded(&error), error) {
            (Some(limit), _) if limits.is_some() => CheckOutcome::Exceeded(limit),
            (Some(limit), _) => {
                CheckOutcome::Failed(format!("the check was ended: {}", checker.excess(limit)))
            }
            (None, CallError::Rejected(found)) => CheckOutcome::Rejected(diagnostics(found)),
            (None, CallError::Refused(reason) | CallError::Missing(reason)) => {
                CheckOutcome::Failed(escape::text(reason.as_str().as_bytes()))
            }
            (None, CallError::Ended) => CheckOutcome::Failed(match checker.sandbox.state() {
                sandbox::State::Ended(end) => {
                    let report = report(&end);
                    format!("the check crashed: {} {}", report.cause, report.message)
                }
                _ => "the check ended without a report".into(),
            }),
            (None, error) => CheckOutcome::Failed(format!("the check failed: {}", with_causes(&error))),
        })
    }
}

/// The error of a configuration that does not use a face of its service.
fn unused_face(port: u8) -> Diagnostic {
    let hint =
        format!("use FromDevice({port}) or ToDevice({port}), or give the service other faces (--faces)");
    Diagnostic {
        hint: Some(hint),
        ..refusal(&format!("port {port} is a face of the service, but no element uses it"))
    }
}
