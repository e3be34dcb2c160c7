//! The thread that accepts functions in processes and containers at the sockets of their services, and watches them.

use super::state::{Fabric, FabricState};
use crate::error::{OperationError, PortError};
use crate::functions::{Attached, Connection, Listener, Received, Sending};
use crate::limits::{
    FUNCTION_LEAVE_TIMEOUT, FUNCTION_LOOK_INTERVAL, JOIN_INTERVAL, MAX_FUNCTION_MESSAGES, MAX_JOINS,
    MAX_UNREGISTERED, REGISTER_TIMEOUT,
};
use crate::network::{FunctionFault, Network, ServiceKey};
use boundary::Slots;
use model::{Destination, EventKind, escape};
use protocol::function::{FromFunction, RefusedReason, ToFunction, VERSION, Welcome};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sandbox::EventFd;
use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use switch::driver::FunctionPort;

/// The slots of a function's rings, unless it asks for another number.
const DEFAULT_SLOTS: u32 = 512;

/// The time for a function whose doorbell is closed to close its connection, too. A process that ends closes one after the other.
const CLOSE_TIME: Duration = Duration::from_millis(100);

impl Fabric {
    /// Accepts functions for a service at a socket that the daemon has bound, in place of the socket before. Functions that are
    /// there stay.
    pub(crate) fn serve_functions(
        &self,
        key: ServiceKey,
        token: &[u8],
        socket: Option<OwnedFd>,
    ) -> Result<(), OperationError> {
        let socket = socket.ok_or(PortError::NoDevice)?;
        let listener = Listener::new(socket, token).map_err(|error| PortError::Device(error.into()))?;
        let of = key.clone();
        self.network(move |network| network.attached_service(&of).map(drop))??;
        let mut sockets = self.0.functions.sockets();
        if !sockets.is_served {
            let (state, wake) = (Arc::downgrade(&self.0), self.0.functions.wake.clone());
            let run = move || Watch::new(state, wake).run();
            let thread = std::thread::Builder::new().name("functions".into()).spawn(run);
            thread.map_err(|error| OperationError::system("start the thread of functions", error))?;
            sockets.is_served = true;
        }
        sockets.listeners.insert(key, Arc::new(listener));
        self.0.functions.wake();
        Ok(())
    }
}

/// What becomes of the functions of a service that is gone.
const REMOVED: &str = "its service was removed or changed";

/// Why a connection ends.
#[derive(Debug)]
enum End {
    /// The function has closed it.
    Closed,
    /// The function is refused, and learns why.
    Refused(RefusedReason),
    /// The function cannot stay.
    Fault(FunctionFault),
    /// The service is gone, or has changed.
    Retired,
}

/// The state of the thread.
struct Watch {
    state: Weak<FabricState>,
    wake: Arc<EventFd>,
    connections: BTreeMap<u64, (ServiceKey, Connection)>,
    /// The number of the next connection.
    next: u64,
    /// How many connections were accepted for each service lately.
    joins: BTreeMap<ServiceKey, Joins>,
}

/// Connections that a service may still accept.
#[derive(Clone, Copy, Debug)]
struct Joins {
    left: u32,
    /// Since when one more is due.
    since: Instant,
}

impl Joins {
    fn new(now: Instant) -> Self {
        Self { left: MAX_JOINS, since: now }
    }

    /// Adds those that are due.
    fn refill(&mut self, now: Instant) {
        let due = now.saturating_duration_since(self.since).as_nanos() / JOIN_INTERVAL.as_nanos();
        let due = u32::try_from(due).unwrap_or(MAX_JOINS);
        self.left = self.left.saturating_add(due).min(MAX_JOINS);
        self.since = if self.left == MAX_JOINS { now } else { self.since + JOIN_INTERVAL * due };
    }
}

impl Watch {
    fn new(state: Weak<FabricState>, wake: Arc<EventFd>) -> Self {
        Self { state, wake, connections: BTreeMap::new(), next: 1, joins: BTreeMap::new() }
    }

    /// Serves until the fabric is gone.
    fn run(mut self) {
        let mut looked = Instant::now();
        loop {
            let Some(state) = self.state.upgrade() else { return };
            let listeners = state.functions.sockets().listeners.clone();
            drop(state);
            self.refill_joins(&listeners);
            let (is_woken, ready, accepting) = self.wait(&listeners);
            let Some(state) = self.state.upgrade() else { return };
            if state.is_ending() {
                return;
            }
            let fabric = Fabric(state);
            if is_woken {
                self.wake.rang();
                self.retire_listeners(&fabric);
            }
            for key in accepting {
                if let Some(listener) = listeners.get(&key) {
                    self.accept(&key, listener);
                }
            }
            for number in ready {
                self.read(&fabric, &listeners, number);
            }
            if is_woken || looked.elapsed() >= FUNCTION_LOOK_INTERVAL {
                looked = Instant::now();
                self.look(&fabric, looked);
            }
        }
    }

    /// Waits until something is to do. Returns whether the thread was woken, the connections that are readable, and the
    /// services at whose sockets functions wait.
    fn wait(&self, listeners: &BTreeMap<ServiceKey, Arc<Listener>>) -> (bool, Vec<u64>, Vec<ServiceKey>) {
        let readable = |connection: &Connection| match connection.budget {
            0 => PollFlags::empty(),
            _ => PollFlags::IN,
        };
        let may_join = |key: &ServiceKey| self.joins.get(key).is_some_and(|joins| joins.left > 0);
        let joinable = |key| if may_join(key) { PollFlags::IN } else { PollFlags::empty() };
        let mut polls = vec![PollFd::from_borrowed_fd(self.wake.as_fd(), PollFlags::IN)];
        polls.extend(
            listeners.iter().map(|(key, there)| PollFd::from_borrowed_fd(there.as_fd(), joinable(key))),
        );
        let of_connections = self.connections.values();
        polls.extend(
            of_connections.map(|(_, there)| PollFd::from_borrowed_fd(there.as_fd(), readable(there))),
        );
        let interval = Timespec::try_from(FUNCTION_LOOK_INTERVAL).unwrap_or_default();
        // An idle fabric without functions sleeps.
        let is_late = !listeners.keys().all(may_join);
        let timeout = (is_late || !self.connections.is_empty()).then_some(interval);
        if poll(&mut polls, timeout.as_ref()).is_err() {
            return (false, Vec::new(), Vec::new());
        }
        let mut ready = polls.iter().map(|poll| !poll.revents().is_empty());
        let is_woken = ready.next().unwrap_or(false);
        let accepting: Vec<_> =
            listeners.keys().zip(ready.by_ref()).filter(|(_, is_ready)| *is_ready).collect();
        let accepting = accepting.into_iter().map(|(key, _)| key.clone()).collect();
        let connections = self.connections.keys().zip(ready).filter(|(_, is_ready)| *is_ready);
        (is_woken, connections.map(|(number, _)| *number).collect(), accepting)
    }

    /// Forgets the sockets of services that are gone.
    fn retire_listeners(&self, fabric: &Fabric) {
        let keys: Vec<_> = fabric.0.functions.sockets().listeners.keys().cloned().collect();
        for key in keys {
            let of = key.clone();
            if matches!(fabric.network(move |network| network.attached_service(&of).map(drop)), Ok(Err(_))) {
                fabric.0.functions.sockets().listeners.remove(&key);
            }
        }
    }

    /// Lets services accept the connections that are due.
    fn refill_joins(&mut self, listeners: &BTreeMap<ServiceKey, Arc<Listener>>) {
        let now = Instant::now();
        self.joins.retain(|key, _| listeners.contains_key(key));
        for key in listeners.keys() {
            match self.joins.get_mut(key) {
                Some(joins) => joins.refill(now),
                None => drop(self.joins.insert(key.clone(), Joins::new(now))),
            }
        }
    }

    fn accept(&mut self, key: &ServiceKey, listener: &Listener) {
        for _ in 0..MAX_UNREGISTERED {
            let Some(joins) = self.joins.get_mut(key).filter(|joins| joins.left > 0) else { return };
            let Some(connection) = listener.accept() else { return };
            joins.left -= 1;
            let unregistered =
                self.connections.values().filter(|(of, there)| of == key && there.attached.is_none());
            // One that is too many is closed.
            if unregistered.count() < MAX_UNREGISTERED {
                self.connections.insert(self.next, (key.clone(), connection));
                self.next += 1;
            }
        }
    }

    /// Reads what a function has sent.
    fn read(&mut self, fabric: &Fabric, listeners: &BTreeMap<ServiceKey, Arc<Listener>>, number: u64) {
        loop {
            let Some((key, connection)) = self.connections.get_mut(&number) else { return };
            let end = match (connection.receive(), &connection.attached) {
                (Received::Nothing, _) => return,
                (Received::Closed, _) => Some(End::Closed),
                (Received::Malformed, _) => Some(End::Refused(RefusedReason::Malformed)),
                (Received::Message(FromFunction::Register { version, slots, hands_over, token }), None) => {
                    match listeners.get(key) {
                        _ if version != VERSION => Some(End::Refused(RefusedReason::Version)),
                        Some(listener) if listener.is_token(&token) => {
                            register(fabric, key, number, connection, (slots, hands_over))
                                .err()
                                .map(End::Refused)
                        }
                        _ => Some(End::Refused(RefusedReason::Token)),
                    }
                }
                (Received::Message(FromFunction::Counters(counters)), Some(_)) => {
                    if let Some(attached) = &mut connection.attached {
                        // The next look stores them: a function may not stop the switch with each message.
                        attached.counters = Some(counters);
                    }
                    None
                }
                (Received::Message(FromFunction::Message { destination, payload }), Some(_)) => {
                    self.pass_on(number, destination, payload);
                    None
                }
                (Received::Message(FromFunction::Leave), Some(attached)) if !attached.is_leaving => {
                    let states = attached.states.clone();
                    if let Some(attached) = &mut connection.attached {
                        attached.is_leaving = true;
                        attached.hands_over_until =
                            states.as_ref().map(|_| Instant::now() + FUNCTION_LEAVE_TIMEOUT);
                    }
                    match states {
                        Some(states) => {
                            states.leave();
                            let of = key.clone();
                            // If it cannot be drained, the next look lets it leave.
                            let _ = fabric.network(move |network| network.drain_function(&of, number));
                        }
                        None => let_leave(fabric, key, number, connection),
                    }
                    None
                }
                (Received::Message(FromFunction::States { number, reply }), Some(attached)) => {
                    // An answer that comes too late is no error. One that was asked for is none too many.
                    if attached.states.as_ref().is_some_and(|states| states.answer(number, reply)) {
                        connection.budget += 1;
                    }
                    None
                }
                // It registers or leaves twice, or something else comes first.
                (Received::Message(_), _) => Some(End::Refused(RefusedReason::Malformed)),
            };
            if let Some(end) = end {
                return self.end(fabric, number, &end);
            }
            if self.connections.get(&number).is_none_or(|(_, there)| there.budget == 0) {
                return;
            }
        }
    }

    /// Passes bytes on to all functions of a service that this one may send to.
    fn pass_on(&mut self, number: u64, destination: u16, payload: Vec<u8>) {
        let Some((key, sender)) = self.connections.get(&number) else { return };
        let of = sender.attached.as_ref();
        let to = match of.and_then(|attached| attached.destinations.get(usize::from(destination))) {
            Some(Destination::Service(service)) => Some(service.clone()),
            _ => None,
        };
        let message = ToFunction::Message { from: key.service.clone(), payload };
        let is_receiver = |(of, there): &&(ServiceKey, Connection)| {
            of.switch == key.switch && Some(&of.service) == to.as_ref() && there.attached.is_some()
        };
        let receivers = self.connections.values().filter(is_receiver);
        let (mut reached, mut lost) = (0u64, 0u64);
        for (_, receiver) in receivers {
            match receiver.send(&message, &[]) {
                Sending::Done => reached += 1,
                Sending::Lost => lost += 1,
            }
        }
        if reached == 0 {
            lost = lost.max(1);
        }
        if let Some((_, Connection { attached: Some(attached), .. })) = self.connections.get_mut(&number) {
            attached.lost_messages += lost;
        }
    }

    /// Ends the connections of functions that cannot stay, and of those that did not register.
    fn look(&mut self, fabric: &Fabric, now: Instant) {
        let counters = self.connections.iter_mut().filter_map(|(number, (key, connection))| {
            Some((key.clone(), *number, connection.attached.as_mut()?.counters.take()?))
        });
        let counters: Vec<_> = counters.collect();
        let look = move |network: &mut Network| {
            for (key, number, counters) in counters {
                network.set_function_counters(&key, number, counters);
            }
            network.look_at_functions(now)
        };
        let Ok(found) = fabric.network(look) else { return };
        self.end_handovers(fabric, now);
        let mut ends = Vec::new();
        for (number, (_, connection)) in &mut self.connections {
            connection.budget = MAX_FUNCTION_MESSAGES;
            let end = match (&mut connection.attached, found.get(number)) {
                (None, _) if now.saturating_duration_since(connection.since) >= REGISTER_TIMEOUT => {
                    Some(End::Refused(RefusedReason::Late))
                }
                (None, _) | (Some(_), Some(None)) => None,
                // Its process may be ending: its connection closes next.
                (Some(attached), Some(Some(FunctionFault::Doorbell))) => {
                    let since = *attached.closed_at.get_or_insert(now);
                    let is_ending = now.saturating_duration_since(since) < CLOSE_TIME;
                    (!is_ending).then_some(End::Fault(FunctionFault::Doorbell))
                }
                (Some(_), Some(Some(fault))) => Some(End::Fault(fault.clone())),
                (Some(_), None) => Some(End::Retired),
            };
            ends.extend(end.map(|end| (*number, end)));
        }
        for (number, end) in ends {
            self.end(fabric, number, &end);
        }
    }

    /// Lets functions leave that have handed over the state of their flows, or had the time for it.
    fn end_handovers(&mut self, fabric: &Fabric, now: Instant) {
        for (number, (key, connection)) in &mut self.connections {
            let Some(until) = connection.attached.as_ref().and_then(|attached| attached.hands_over_until)
            else {
                continue;
            };
            let (of, number) = (key.clone(), *number);
            let hands_over = fabric.network(move |network| network.hands_over(&of, number)).unwrap_or(false);
            if hands_over && now < until {
                continue;
            }
            if let Some(attached) = &mut connection.attached {
                attached.hands_over_until = None;
                if hands_over {
                    let message = format!(
                        "not all flows of instance {} of service {} were handed over: it took more than {} s; flows go on without their state",
                        attached.instance,
                        key.service,
                        FUNCTION_LEAVE_TIMEOUT.as_secs()
                    );
                    fabric.0.note(EventKind::StateKept, &key.service, message);
                }
            }
            let_leave(fabric, key, number, connection);
        }
    }

    fn end(&mut self, fabric: &Fabric, number: u64, end: &End) {
        let Some((key, connection)) = self.connections.remove(&number) else { return };
        if let End::Refused(reason) = end {
            connection.send(&ToFunction::Refused(*reason), &[]);
        }
        let Some(Attached { instance, lost_messages, counters, is_leaving, states, .. }) =
            connection.attached
        else {
            return;
        };
        if let Some(states) = states {
            fabric.0.functions.end_states(&key.switch, &instance, &states);
        }
        let of = key.clone();
        let detached = fabric.network(move |network| {
            if let Some(counters) = counters {
                network.set_function_counters(&of, number, counters);
            }
            (network.hands_over(&of, number), network.detach_function(&of, number))
        });
        let hands_over = matches!(detached, Ok((true, _)));
        let detached = detached.map(|(_, lost)| lost);
        let why = match end {
            // With its service its doorbell is closed, whereupon it may leave before it is told why.
            End::Closed if matches!(detached, Ok(None)) => REMOVED.into(),
            End::Closed | End::Fault(FunctionFault::Doorbell) if is_leaving => "it left in order".into(),
            End::Closed => "its process ended or left".into(),
            End::Refused(_) => "it sent something that is no message".into(),
            End::Fault(FunctionFault::Silent) => {
                "it took no packets for 2 s although some waited, and was taken out".into()
            }
            End::Fault(FunctionFault::Violation(text)) => escape::line(text.as_bytes()),
            End::Fault(FunctionFault::Doorbell) => "it closed its doorbell".into(),
            End::Retired => REMOVED.into(),
        };
        let lost = detached.ok().flatten().unwrap_or(0);
        let mut message = format!("function {instance} left service {}: {why}", key.service);
        if hands_over {
            message += "; it had not handed over the state of its flows";
        }
        for (count, what) in [(lost, "packet"), (lost_messages, "message")] {
            message += &match count {
                0 => continue,
                1 => format!("; 1 {what} was lost"),
                count => format!("; {count} {what}s were lost"),
            };
        }
        fabric.0.note(EventKind::FunctionDetached, &key.service, message);
    }
}

/// Lets a function leave, and tells it so.
fn let_leave(fabric: &Fabric, key: &ServiceKey, number: u64, connection: &Connection) {
    let of = key.clone();
    // If the service is gone, the next look says so.
    let _ = fabric.network(move |network| network.let_leave(&of, number, true));
    connection.send(&ToFunction::Leaving, &[]);
}

/// Makes a function an instance, and tells it so. It joins the packet pool of the owner if the service says so and the
/// pool has room.
fn register(
    fabric: &Fabric,
    key: &ServiceKey,
    number: u64,
    connection: &mut Connection,
    (slots, hands_over): (u16, bool),
) -> Result<(), RefusedReason> {
    let slots = if slots == 0 { DEFAULT_SLOTS } else { slots.into() };
    let slots = Slots::new(slots).map_err(|_| RefusedReason::Malformed)?;
    let unavailable = RefusedReason::Unavailable;
    let of = key.clone();
    let service = fabric.network(move |network| network.attached_service(&of));
    let service = service.ok().and_then(Result::ok).ok_or(unavailable)?;
    let pool = service.pool.as_ref().map(|owner| fabric.0.factory.pool(owner));
    let pool = pool.transpose().map_err(|_| unavailable)?;
    let join = |buffers| pool.as_ref()?.share(buffers).ok();
    let made = FunctionPort::create_in(service.faces.ports().count(), slots, join);
    let (ports, ends) = made.map_err(|_| unavailable)?;
    let of = key.clone();
    let instance = fabric.network(move |network| network.attach_function(&of, number, ports));
    let instance = instance.ok().and_then(Result::ok).ok_or(unavailable)?.ok_or(RefusedReason::Full)?;
    let first = ends.layout.ports.first();
    let (buffers, buffers_size) = first.map_or((0, 0), |port| (port.buffers, port.buffers_size));
    let pool = pool.filter(|_| ends.layout.extent > ends.layout.size);
    let place = |place: usize| u32::try_from(place).unwrap_or(u32::MAX);
    let welcome = Welcome {
        instance: instance.clone(),
        service: key.service.clone(),
        slots: slots.count() as u16,
        region: ends.layout.size as u64,
        buffers: if pool.is_some() { 0 } else { buffers as u64 },
        buffer_count: place(buffers_size / boundary::limits::BUFFER_SIZE),
        lets_leave: true,
        hands_over: true,
        faces: ends.layout.ports.iter().map(|port| [port.receive, port.transmit].map(place)).collect(),
        destinations: service.destinations.clone(),
    };
    let mut descriptors = vec![ends.memory.as_fd(), ends.doorbell.as_fd()];
    descriptors.extend(pool.as_ref().map(|pool| pool.file().as_fd()));
    let states = hands_over.then(|| connection.state_calls());
    if let Some(states) = &states {
        fabric.0.functions.add_states(&key.switch, &instance, states.clone());
    }
    connection.attached = Some(Attached {
        instance: instance.clone(),
        destinations: service.destinations,
        is_leaving: false,
        states,
        hands_over_until: None,
        closed_at: None,
        lost_messages: 0,
        counters: None,
    });
    // If it is gone already, reading says so.
    connection.send(&ToFunction::Welcome(welcome), &descriptors);
    let process = connection.process().map_or_else(String::new, |process| format!(" (process {process})"));
    let memory = match (&service.pool, &pool) {
        (None, _) => "",
        (Some(_), Some(_)) => " in the packet pool of its owner",
        (Some(_), None) => " for which the packet pool of its owner has no room, with memory of its own,",
    };
    let message = format!("a function{process}{memory} joined service {} as {instance}", key.service);
    fabric.0.note(EventKind::FunctionAttached, &key.service, message);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joins_become_due_one_after_the_other() {
        let begin = Instant::now();
        let mut joins = Joins::new(begin);
        joins.left = 0;
        let mut left = |after| {
            joins.refill(begin + JOIN_INTERVAL * after / 10);
            joins.left
        };
        // No part of an interval is lost, and none counts twice.
        assert_eq!([9, 10, 19, 20, 20, 29, 35, 41].map(&mut left), [0, 1, 1, 2, 2, 2, 3, 4]);
        assert_eq!([10 * MAX_JOINS, 20 * MAX_JOINS].map(&mut left), [MAX_JOINS; 2]);
        joins.left = 0;
        joins.refill(begin + JOIN_INTERVAL * 2 * MAX_JOINS + JOIN_INTERVAL / 2);
        assert_eq!(joins.left, 0, "nothing was due while there were enough");
    }
}
