//! What a daemon reports when it has rebuilt a fabric.

use api::client::{Client, ClientError};
use api::{Event, EventKind, EventQuery, operation};

/// The number of the last event.
pub(crate) fn last_event(client: &Client) -> Result<u64, ClientError> {
    let events = client.call(&operation::EVENTS, &[], &EventQuery::default(), &())?;
    let mut last = 0;
    for event in events {
        last = event?.sequence;
    }
    Ok(last)
}

/// The next event after the one with this number that reports a rebuilt fabric. With `follow`, waits for it as long as the
/// client's calls may take.
pub(crate) fn rebuilt(client: &Client, since: u64, follow: bool) -> Result<Option<Event>, ClientError> {
    let query = EventQuery { since: Some(since), follow };
    for event in client.call(&operation::EVENTS, &[], &query, &())? {
        let event = event?;
        if event.kind == EventKind::FabricRestarted {
            return Ok(Some(event));
        }
    }
    Ok(None)
}

/// How long the daemon took to rebuild the fabric, in milliseconds, as the event says.
pub(crate) fn rebuild_ms(event: &Event) -> Option<f64> {
    event.message.strip_suffix(" ms")?.rsplit(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::Time;

    #[test]
    fn the_time_of_a_rebuild_is_read() {
        let event = |message: &str| Event {
            sequence: 1,
            time: Time::now(),
            kind: EventKind::FabricRestarted,
            subject: "daemon".into(),
            owner: None,
            message: message.into(),
        };
        assert_eq!(rebuild_ms(&event("the fabric was restarted with all boxes in 4.6 ms")), Some(4.6));
        assert_eq!(rebuild_ms(&event("the fabric was restarted")), None);
    }
}
