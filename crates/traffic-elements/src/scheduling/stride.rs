//! Stride scheduling among clients with tickets.

use element::arguments::Raw;
use element::prelude::*;

/// Stride of a client with one ticket.
const STRIDE1: u32 = 1 << 16;
/// Maximum number of tickets, so that strides stay above zero.
const MAX_TICKETS: i32 = 1 << 15;

/// Stride scheduler: clients take turns in proportion to their tickets (Waldspurger and Weihl, 1995).
pub(crate) struct Stride {
    clients: Vec<Client>,
    /// Clients with tickets, next one first.
    order: Vec<usize>,
    /// Clients that had their turn and have to be reinserted into `order`.
    stridden: Vec<usize>,
}

struct Client {
    tickets: i32,
    pass: u32,
    stride: u32,
}

impl Client {
    fn new(tickets: i32) -> Client {
        let stride = stride(tickets);
        Client { tickets, pass: stride, stride }
    }
}

impl Stride {
    /// Makes a scheduler with the given tickets per client.
    pub(crate) fn new(tickets: &[i32]) -> Stride {
        let clients = tickets.iter().map(|tickets| Client::new(*tickets)).collect();
        let mut stride = Stride { clients, order: Vec::new(), stridden: Vec::new() };
        stride.sort();
        stride
    }

    /// Changes the tickets of all clients; each keeps its current pass.
    pub(crate) fn set_all(&mut self, tickets: &[i32]) {
        for (client, tickets) in self.clients.iter_mut().zip(tickets) {
            (client.tickets, client.stride) = (*tickets, stride(*tickets));
        }
        self.sort();
    }

    /// Gives clients their turns until one of them uses it.
    #[inline]
    pub(crate) fn turn(&mut self, mut uses: impl FnMut(usize) -> bool) {
        let mut turns = 0;
        for &client in &self.order {
            turns += 1;
            let used = uses(client);
            if let Some(client) = self.clients.get_mut(client) {
                client.pass = client.pass.wrapping_add(client.stride);
            }
            if used {
                break;
            }
        }
        if turns == 1 {
            return self.reinsert_first();
        }
        // All that had their turn leave before the first comes back, as their order among each other depends on it.
        let mut stridden = core::mem::take(&mut self.stridden);
        stridden.extend(self.order.drain(..turns));
        for client in stridden.drain(..) {
            self.insert(client);
        }
        self.stridden = stridden;
    }

    /// Moves the first client to where `insert` would put it back.
    #[inline]
    fn reinsert_first(&mut self) {
        let Some((first, others)) = self.order.split_first() else { return };
        let later = self.position(*first, others);
        if let Some(moved) = self.order.get_mut(..=later) {
            moved.rotate_left(1);
        }
    }

    /// The client with tickets, if there is only one.
    #[inline]
    pub(crate) fn only(&self) -> Option<usize> {
        match self.order.as_slice() {
            [only] => Some(*only),
            _ => None,
        }
    }

    /// Tickets of all clients in the syntax of the configuration.
    pub(crate) fn config(&self) -> String {
        let tickets: Vec<String> = self.clients.iter().map(|client| client.tickets.to_string()).collect();
        tickets.join(", ")
    }

    /// Number of clients.
    pub(crate) fn len(&self) -> usize {
        self.clients.len()
    }

    /// Tickets of a client; zero if it does not exist.
    pub(crate) fn tickets(&self, port: usize) -> i32 {
        self.clients.get(port).map_or(0, |client| client.tickets)
    }

    /// Sets the tickets of a client from a handler's value.
    pub(crate) fn write(&mut self, cx: &Context, port: usize, value: &str) -> Result<(), HandlerError> {
        let tickets: i32 =
            cx.argument(value).map_err(|_| HandlerError::new("tickets value must be integer"))?;
        if tickets < 0 {
            return Err(HandlerError::new("number of tickets must be >= 0"));
        }
        if tickets > MAX_TICKETS {
            cx.log_between_packets(&format!("warning: port {port}’s tickets reduced to {MAX_TICKETS}"));
        }
        self.set(port, tickets.min(MAX_TICKETS));
        Ok(())
    }

    /// Changes the tickets of one client. A client that had none is queued behind the next one.
    fn set(&mut self, port: usize, tickets: i32) {
        let first = self.order.first().and_then(|first| self.clients.get(*first)).map(|client| client.pass);
        let Some(client) = self.clients.get_mut(port) else { return };
        let old = core::mem::replace(&mut client.tickets, tickets);
        client.stride = stride(tickets);
        if tickets == 0 {
            self.order.retain(|other| *other != port);
        } else if old == 0 {
            client.pass = first.map_or(0, |pass| pass.wrapping_add(client.stride));
            self.insert(port);
        }
    }

    fn sort(&mut self) {
        self.order.clear();
        // Backwards, because of two with the same pass the later one goes first.
        for port in (0..self.clients.len()).rev() {
            if self.clients.get(port).is_some_and(|client| client.tickets > 0) {
                self.insert(port);
            }
        }
    }

    /// Inserts a client before the first one whose pass is not lower.
    #[inline]
    fn insert(&mut self, port: usize) {
        self.order.insert(self.position(port, &self.order), port);
    }

    /// The index of the first of the `others` whose pass is not lower than that of a client.
    #[inline]
    fn position(&self, port: usize, others: &[usize]) -> usize {
        let pass = |port: usize| self.clients.get(port).map_or(0, |client| client.pass);
        let own = pass(port);
        let later = |other: &usize| own.wrapping_sub(pass(*other)).cast_signed() <= 0;
        others.iter().position(later).unwrap_or(others.len())
    }
}

fn stride(tickets: i32) -> u32 {
    STRIDE1.checked_div(tickets.unsigned_abs()).unwrap_or(0)
}

/// Parses the tickets for an element's `ports` ports on the given `side`.
pub(crate) fn tickets(
    arguments: &[Raw],
    ports: usize,
    side: &str,
    setup: &mut Setup,
) -> Result<Vec<i32>, SetupError> {
    if arguments.len() != ports {
        return Err(SetupError::ports(format!("need {ports} arguments, one per {side} port")));
    }
    let mut errors = SetupError::default();
    let mut all = Vec::new();
    for (index, argument) in arguments.iter().enumerate() {
        match i32::from_argument(&argument.0, setup) {
            Err(_) => {
                let text = format!("argument {index} should be number of tickets (integer)");
                let problem = "the number of tickets is an integer";
                errors.merge(SetupError::in_argument(&argument.0, text, problem));
            }
            Ok(tickets) if tickets < 0 => {
                let text = format!("argument {index} (number of tickets) must be >= 0");
                errors.merge(SetupError::in_argument(
                    &argument.0,
                    text,
                    "the number of tickets is at least 0",
                ));
            }
            Ok(tickets) => {
                if tickets > MAX_TICKETS {
                    setup.warn(format!("{side} {index}’s tickets reduced to {MAX_TICKETS}"));
                }
                all.push(tickets.min(MAX_TICKETS));
            }
        }
    }
    errors.into_result()?;
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The clients of the first turns if every client uses its turns.
    fn turns(stride: &mut Stride, count: usize) -> Vec<usize> {
        let mut turns = Vec::new();
        for _ in 0..count {
            stride.turn(|client| {
                turns.push(client);
                true
            });
        }
        turns
    }

    #[test]
    fn turns_are_in_proportion_to_tickets() {
        let mut stride = Stride::new(&[4, 2, 1]);
        assert_eq!(turns(&mut stride, 14), [0, 0, 1, 0, 0, 1, 2, 0, 0, 1, 0, 0, 1, 2]);
        assert_eq!(turns(&mut Stride::new(&[0, 3]), 3), [1, 1, 1]);
        assert_eq!(turns(&mut Stride::new(&[0, 0]), 3), []);
        assert_eq!(turns(&mut Stride::new(&[]), 3), []);
    }

    #[test]
    fn clients_that_decline_a_turn_are_asked_later() {
        let mut stride = Stride::new(&[4, 2]);
        let mut asked = Vec::new();
        stride.turn(|client| {
            asked.push(client);
            client == 1
        });
        stride.turn(|client| {
            asked.push(client);
            true
        });
        assert_eq!(asked, [0, 1, 0]);
    }

    #[test]
    fn tickets_can_be_changed() {
        let mut stride = Stride::new(&[1, 1]);
        stride.set(0, 0);
        assert_eq!(stride.only(), Some(1));
        stride.set(0, 2);
        assert_eq!(stride.config(), "2, 1");
        assert_eq!(turns(&mut stride, 3), [1, 0, 0]);
    }
}
