//! Calls of the daemon. A name that does not exist is compared with the existing ones.

use api::client::{Address, Client as ApiClient, ClientError, Credentials, Receive, Send};
use api::operation::{self, Nothing, Operation};
use api::{ApiError, ErrorReason, HandlerInfo};
use serde::Serialize;

use super::other_kind;
use crate::error::CommandError;

/// A client of one daemon, whose errors suggest the names that may have been meant.
pub(crate) struct Client(ApiClient);

impl Client {
    /// A client of the daemon at an address. Nothing is sent yet.
    pub(crate) fn new(address: Address, credentials: &Credentials) -> Result<Client, ClientError> {
        ApiClient::new(address, credentials).map(Client)
    }

    /// The daemon's address.
    pub(crate) fn address(&self) -> &Address {
        self.0.address()
    }

    /// Calls an operation that takes only path parameters, given in order.
    pub(crate) fn ask<O: Receive>(
        &self,
        operation: &Operation<Nothing, Nothing, O>,
        path: &[&str],
    ) -> Result<O::Value, CommandError> {
        self.call(operation, path, &Nothing, &())
    }

    /// Calls an operation with a body.
    pub(crate) fn send<I: Send, O: Receive>(
        &self,
        operation: &Operation<Nothing, I, O>,
        path: &[&str],
        body: &I::Value,
    ) -> Result<O::Value, CommandError> {
        self.call(operation, path, &Nothing, body)
    }

    /// Calls an operation with a query and a body.
    pub(crate) fn call<Q: Serialize, I: Send, O: Receive>(
        &self,
        operation: &Operation<Q, I, O>,
        path: &[&str],
        query: &Q,
        body: &I::Value,
    ) -> Result<O::Value, CommandError> {
        self.0.call(operation, path, query, body).map_err(|error| match &error {
            ClientError::Api(reply) => {
                if let Some(advice) = self.other_kind(reply, operation.name == operation::CAPTURE.name) {
                    return CommandError::OtherKind { error, advice };
                }
                match self.similar(reply, path) {
                    Some(similar) => CommandError::Misspelt { error, similar },
                    None => CommandError::Client(error),
                }
            }
            _ => CommandError::Client(error),
        })
    }

    /// What has the name that an error is about, if it is not that of a box.
    fn other_kind(&self, error: &ApiError, is_capture: bool) -> Option<String> {
        error.reason.filter(|reason| *reason == ErrorReason::NoBox)?;
        let name = error.subject.as_deref()?.strip_prefix("box/")?;
        other_kind::advice(&self.0, name, is_capture)
    }

    /// The existing name nearest to the one that an error is about, as the user would type it.
    fn similar(&self, error: &ApiError, path: &[&str]) -> Option<String> {
        let mut parts = error.subject.as_deref()?.splitn(3, '/').skip(1);
        let name = parts.next()?;
        match error.reason? {
            ErrorReason::NoBox => {
                let boxes = self.0.ask(&operation::LIST_BOXES, &[]).ok()?;
                nearest(name, boxes.iter().map(|status| status.name.as_str()))
            }
            ErrorReason::NoSwitch => {
                let switches = self.0.ask(&operation::LIST_SWITCHES, &[]).ok()?;
                nearest(name, switches.iter().map(|status| status.name.as_str()))
            }
            ErrorReason::NoPort => {
                let ports = self.0.ask(&operation::SHOW_SWITCH, &[name]).ok()?.port_list;
                nearest(parts.next()?, ports.iter().map(|port| port.name.as_str()))
            }
            ErrorReason::NoStack => {
                let stacks = self.0.ask(&operation::LIST_STACKS, &[]).ok()?;
                nearest(name, stacks.iter().map(|status| status.name.as_str()))
            }
            ErrorReason::NoService => {
                let services = self.0.ask(&operation::LIST_SERVICES, &[]).ok()?;
                nearest(name, services.iter().map(|status| status.name.as_str()))
            }
            ErrorReason::NoChain => {
                let chains = self.0.ask(&operation::LIST_CHAINS, &[]).ok()?;
                let at = chains.iter().filter(|detail| detail.status.chain.switch.as_str() == name);
                nearest(parts.next()?, at.map(|detail| detail.status.chain.name.as_str()))
            }
            ErrorReason::NoHandler => {
                let handlers = self.0.ask(&operation::LIST_HANDLERS, &[name]).ok()?;
                let paths: Vec<String> = handlers.iter().map(HandlerInfo::path).collect();
                let asked = path.get(1)?;
                // A handler of the router is no hint for one of an element.
                let alike = paths.iter().filter(|path| path.contains('.') == asked.contains('.'));
                let similar = nearest(asked, alike.map(String::as_str))?;
                Some(format!("{name}/{similar}"))
            }
            _ => None,
        }
    }
}

/// The nearest of the existing names. A name of one letter is near to every other and gets no suggestion.
pub(super) fn nearest<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> Option<String> {
    name.chars().nth(1)?;
    click_lang::nearest(name, names).map(str::to_string)
}
