//! The loop of an agent.

use super::certificates::CertificateFiles;
use super::error::AgentError;
use super::filter;
use super::line::Line;
use super::remote_switch::RemoteSwitch;
use crate::error::CommandError;
use api::{ControllerMethod, ControllerRole};
use clap::Args;
use openflow::connections::{Certificates, ConnectionStatus, Connections, Endpoint, Transport, turn};
use openflow::message::Role;
use openflow::session::{Agent, AgentLimits};
use protocol::ChannelError;
use protocol::agent::{AgentSwitch, ControllerState, Reply, Request};
use protocol::launcher::become_agent;
use rustix::process::{Resource, Rlimit, setrlimit};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

/// Memory of an agent, in bytes: sessions that hold as much as they may do not take the host's.
const MAX_MEMORY: u64 = 1 << 30;

/// The longest sleep. Reports of ports and states of connections are as old at most.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// Hold the sessions with OpenFlow controllers. Only a launcher starts it.
#[derive(Args)]
#[command(hide = true)]
pub(crate) struct Arguments {
    /// User and group to become.
    #[arg(long, value_name = "UID")]
    user: Option<u32>,
    #[command(flatten)]
    certificates: CertificateFiles,
}

/// Runs it.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, CommandError> {
    match serve(arguments) {
        // The fabric has ended, or has another agent.
        Err(AgentError::Channel(ChannelError::Closed)) => Ok(ExitCode::SUCCESS),
        result => result.map(|()| ExitCode::SUCCESS).map_err(CommandError::Agent),
    }
}

/// Serves the controllers of a fabric until the fabric ends.
fn serve(arguments: &Arguments) -> Result<(), AgentError> {
    // The files may be readable only for the user that this process is now.
    let certificates = arguments.certificates.load().unwrap_or_else(|error| {
        // The launcher could read them. Controllers without TLS need none.
        eprintln!("clickbox agent: controllers over TLS can't be reached: {}", api::with_causes(&error));
        None
    });
    let channel = become_agent(arguments.user).map_err(AgentError::Start)?;
    let memory = Rlimit { current: Some(MAX_MEMORY), maximum: Some(MAX_MEMORY) };
    setrlimit(Resource::Data, memory).map_err(AgentError::Limit)?;
    let program = filter::program().map_err(AgentError::Filter)?;
    program.install().map_err(AgentError::Filter)?;
    let line = Rc::new(RefCell::new(Line::open(channel)?));
    // The sessions use the line while they are served.
    let wake = line.borrow().descriptor().try_clone_to_owned();
    let wake = wake.map_err(|error| AgentError::Channel(error.into()))?;
    let mut switches: BTreeMap<u64, Controlled> = BTreeMap::new();
    let mut wakes = 0;
    loop {
        let now = line.borrow().wakes();
        let is_woken = now != wakes;
        if is_woken {
            wakes = now;
            update(&line, certificates.as_ref(), &mut switches)?;
        }
        // The message that woke it has been read, so its cause is looked for at once.
        let wait = if is_woken { Duration::ZERO } else { MAX_WAIT };
        let connections = switches.values_mut().map(|controlled| &mut controlled.connections);
        turn(connections, Some(wake.as_fd()), wait).map_err(AgentError::Wait)?;
        line.borrow_mut().drain()?;
        for (number, controlled) in &mut switches {
            controlled.report(*number, &line);
        }
        if let Some(fault) = line.borrow_mut().take_fault() {
            return Err(fault);
        }
    }
}

/// A switch with its connections.
struct Controlled {
    described: AgentSwitch,
    connections: Connections<RemoteSwitch>,
    /// The states that were reported, without times.
    reported: Option<Vec<ControllerState>>,
}

impl Controlled {
    fn new(described: AgentSwitch, certificates: Option<&Certificates>, line: &Rc<RefCell<Line>>) -> Self {
        let switch = RemoteSwitch::new(line.clone(), described.number, described.datapath);
        let agent = Agent::new(switch, AgentLimits::default());
        let connections = Connections::new(agent, &endpoints(&described), certificates.cloned());
        Self { described, connections, reported: None }
    }

    /// Tells the fabric how the connections are, if that changed.
    fn report(&mut self, number: u64, line: &RefCell<Line>) {
        let states: Vec<ControllerState> = self.connections.statuses().map(state).collect();
        let without_time = |state: &ControllerState| ControllerState { since_seconds: 0, ..state.clone() };
        let summary: Vec<ControllerState> = states.iter().map(without_time).collect();
        if self.reported.as_ref() != Some(&summary) {
            line.borrow_mut().ask(Request::Status { switch: number, controllers: states });
            self.reported = Some(summary);
        }
    }
}

/// Where the controllers of a switch are.
fn endpoints(switch: &AgentSwitch) -> Vec<Endpoint> {
    let methods = switch.methods.iter().copied().chain(std::iter::repeat(ControllerMethod::Tcp));
    let endpoint = |(address, method): (&SocketAddr, ControllerMethod)| Endpoint {
        transport: match method {
            ControllerMethod::Tcp => Transport::Tcp,
            ControllerMethod::Tls => Transport::Tls,
            ControllerMethod::PassiveTcp => Transport::PassiveTcp,
            ControllerMethod::PassiveTls => Transport::PassiveTls,
        },
        address: *address,
    };
    switch.controllers.iter().zip(methods).map(endpoint).collect()
}

fn state(status: ConnectionStatus) -> ControllerState {
    ControllerState {
        role: status.role.map(|role| match role {
            Role::Equal => ControllerRole::Equal,
            Role::Master => ControllerRole::Master,
            Role::Slave => ControllerRole::Slave,
        }),
        since_seconds: status.since.as_secs(),
        error: status.fault.map(|fault| fault.to_string()),
        gets_misses: status.is_version1,
    }
}

/// Begins with switches that are new, and forgets those that are gone.
fn update(
    line: &Rc<RefCell<Line>>,
    certificates: Option<&Certificates>,
    switches: &mut BTreeMap<u64, Controlled>,
) -> Result<(), AgentError> {
    let reply = line.borrow_mut().ask(Request::Switches);
    let list = match reply {
        Some(Reply::Switches(list)) => list,
        Some(_) => return Err(AgentError::NotAReply),
        None => return Ok(()),
    };
    switches.retain(|number, known| {
        list.iter().any(|switch| switch.number == *number && *switch == known.described)
    });
    for switch in list {
        switches.entry(switch.number).or_insert_with(|| Controlled::new(switch, certificates, line));
    }
    Ok(())
}
