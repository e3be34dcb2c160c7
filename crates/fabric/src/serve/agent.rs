//! The connection to the agent, which holds the sessions with OpenFlow controllers, and the thread that serves it.

use super::connection::report;
use super::controller_reports::{bodies, multipart_request, without_header};
use crate::lifecycle::Fabric;
use crate::network::{AgentFault, Network};
use model::with_causes;
use openflow::ErrorCode;
use openflow::message::Message;
use protocol::agent::{
    AgentPacket, AgentSwitch, ControllerState, FromFabric, MAX_ERROR, MAX_REQUEST, Reply, Request, ToFabric,
    VERSION, datapath,
};
use protocol::{Channel, ChannelError, Hello, Received};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use serde_bytes::ByteBuf;
use std::os::fd::AsFd;

/// Serves the agent until it closes the connection or violates the protocol. It never waits for the agent in the thread that
/// moves packets.
pub fn serve_agent(fabric: &Fabric, channel: &Channel) {
    if let Err(why) = converse(fabric, channel) {
        report(&format!("the connection of the agent was closed: {why}"));
    }
    channel.shut_down();
    let _ = fabric.network(Network::forget_agent);
}

fn converse(fabric: &Fabric, channel: &Channel) -> Result<(), String> {
    let failed = |error: ChannelError| with_causes(&error);
    let Ok(bell) = fabric.network(|network| network.agent_bell()) else { return Ok(()) };
    let ours = Hello { version: VERSION, store: fabric.store() };
    channel.send(&FromFabric::Hello(ours), &[]).map_err(failed)?;
    match channel.receive::<ToFabric>(MAX_REQUEST).map_err(failed)? {
        Some(Received { message: ToFabric::Hello(theirs), .. }) => {
            ours.agree(&theirs).map_err(|error| error.to_string())?;
        }
        Some(_) => return Err("the agent does not begin with a greeting".into()),
        None => return Ok(()),
    }
    loop {
        let mut ready =
            [PollFd::new(channel, PollFlags::IN), PollFd::from_borrowed_fd(bell.as_fd(), PollFlags::IN)];
        match poll(&mut ready, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.to_string()),
        }
        let [has_message, has_rung] = [0, 1].map(|at: usize| !ready[at].revents().is_empty());
        if has_rung && bell.rang() {
            match channel.send(&FromFabric::Wake, &[]) {
                Ok(()) => {}
                Err(ChannelError::Closed) => return Ok(()),
                Err(error) => return Err(with_causes(&error)),
            }
        }
        if !has_message {
            continue;
        }
        let request = match channel.receive::<ToFabric>(MAX_REQUEST) {
            Ok(Some(Received { message: ToFabric::Request(request), .. })) => request,
            Ok(Some(_)) => return Err("the agent greets twice".into()),
            Ok(None) => return Ok(()),
            Err(error) => return Err(with_causes(&error)),
        };
        let Some(reply) = answer(fabric, request) else { return Ok(()) };
        // What the request caused is announced first.
        let wake = bell.rang().then_some(FromFabric::Wake);
        for message in wake.into_iter().chain([FromFabric::Reply(reply)]) {
            match channel.send(&message, &[]) {
                Ok(()) => {}
                Err(ChannelError::Closed) => return Ok(()),
                Err(error) => return Err(with_causes(&error)),
            }
        }
    }
}

/// Answers a request; `None` if the fabric is ending.
fn answer(fabric: &Fabric, request: Request) -> Option<Reply> {
    let store = fabric.store();
    let result = match request {
        Request::Switches => {
            let switches = fabric.network(|network| network.controlled_switches()).ok()?;
            let list = switches.into_iter().map(|(number, definition)| {
                let controllers = || definition.controllers.iter().take(model::MAX_CONTROLLERS);
                AgentSwitch {
                    number,
                    datapath: datapath(store, &definition.name),
                    controllers: controllers().map(|controller| controller.address).collect(),
                    methods: controllers().map(|controller| controller.method).collect(),
                    name: definition.name.clone(),
                }
            });
            Ok(Reply::Switches(list.collect()))
        }
        Request::Perform { switch, message_type, body } => match Message::decode(message_type, &body) {
            Ok(message) => {
                ask(fabric, move |network| network.perform_message(switch, message))?.map(|()| Reply::Done)
            }
            Err(code) => Err(code.into()),
        },
        Request::Report { switch, body, from } => match multipart_request(&body) {
            Ok(request) => {
                let part = ask(fabric, move |network| network.report_part(switch, &request, from))?;
                part.map(|part| Reply::Report { bodies: bodies(&part), next: part.next })
            }
            Err(code) => Err(code.into()),
        },
        Request::Events { switch } => {
            let events = ask(fabric, move |network| network.controller_events(switch))?;
            events.map(|(packets, messages)| Reply::Events {
                packets: packets
                    .into_iter()
                    .filter_map(|(packet, max_length)| {
                        let (_, body) = encoded(&Message::PacketIn(packet))?;
                        Some(AgentPacket { body, max_length })
                    })
                    .collect(),
                messages: messages.iter().filter_map(encoded).collect(),
            })
        }
        Request::Status { switch, controllers } => {
            let controllers: Vec<ControllerState> =
                controllers.into_iter().take(model::MAX_CONTROLLERS).map(bounded).collect();
            let news = ask(fabric, move |network| network.set_controller_states(switch, controllers))?;
            news.map(|news| {
                fabric.note_controllers(news);
                Reply::Done
            })
        }
    };
    Some(result.unwrap_or_else(|fault| match fault {
        AgentFault::NoSwitch => Reply::NoSwitch,
        AgentFault::Refused(ErrorCode { error_type, code }) => Reply::Refused { error_type, code },
    }))
}

/// Runs a command in the thread that moves packets; `None` if it is ending.
fn ask<T: Send + 'static>(
    fabric: &Fabric,
    command: impl FnOnce(&mut Network) -> Result<T, AgentFault> + Send + 'static,
) -> Option<Result<T, AgentFault>> {
    fabric.network(command).ok()
}

/// The type and the body of a message. Only a frame that is longer than any message has none.
fn encoded(message: &Message) -> Option<(u8, ByteBuf)> {
    Some((message.message_type(), without_header(message.encode(0).ok()?)?))
}

/// The state of a connection, with an error of bounded length.
fn bounded(mut state: ControllerState) -> ControllerState {
    if let Some(error) = &mut state.error {
        let end = (0..=MAX_ERROR).rev().find(|end| error.is_char_boundary(*end)).unwrap_or(0);
        error.truncate(end);
    }
    state
}
