//! Orders on channels of their own, of many threads at once, and what becomes of them when the fabric ends.

use protocol::fabric::{Client, FabricError, FromFabric, Order, Reply, ToFabric, VERSION, orders};
use protocol::{Channel, Hello, Received, StoreIdentity, codec};
use serde_bytes::ByteBuf;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Barrier};
use std::thread::{self, JoinHandle};

const STORE: StoreIdentity = [7; 16];
const MAX_MESSAGE: usize = 1 << 20;
const CHANNELS: usize = 4;

/// What a fabric does.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Conduct {
    /// It knows no order channels.
    Earlier,
    /// It answers everything.
    Answers,
    /// It ends in the middle of an order.
    Ends,
    /// It answers another order.
    Confuses,
}

/// A fabric. It counts the orders on its order channels.
fn fabric(conduct: Conduct, alone: &Arc<AtomicUsize>) -> Channel {
    let (near, far) = Channel::pair().unwrap();
    let alone = alone.clone();
    thread::spawn(move || {
        let _: ToFabric = far.receive(MAX_MESSAGE).unwrap().unwrap().message;
        far.send(&FromFabric::Hello(Hello { version: VERSION, store: STORE }), &[]).unwrap();
        let far = Arc::new(far);
        serve(conduct, &far, &far, &alone, false);
    });
    near
}

fn serve(conduct: Conduct, main: &Arc<Channel>, channel: &Channel, alone: &Arc<AtomicUsize>, is_alone: bool) {
    let done = || Ok(ByteBuf::from(codec::encode_to(&(), Vec::new()).unwrap()));
    while let Ok(Some(Received { message: ToFabric::Order { mut number, order }, descriptors })) =
        channel.receive::<ToFabric>(MAX_MESSAGE)
    {
        alone.fetch_add(usize::from(is_alone), Ordering::SeqCst);
        let result = match *order {
            Order::OpenChannels(_) if conduct == Conduct::Earlier => Err(FabricError::Unsupported),
            Order::OpenChannels(_) => {
                for descriptor in descriptors {
                    let (main, alone) = (main.clone(), alone.clone());
                    let channel = Channel::from(descriptor);
                    thread::spawn(move || serve(conduct, &main, &channel, &alone, true));
                }
                done()
            }
            Order::Ping(_) => done(),
            Order::Writes(_) if conduct == Conduct::Ends => return main.shut_down(),
            Order::Writes(_) if conduct == Conduct::Confuses && !is_alone => continue,
            Order::Writes(_) => {
                number += u64::from(conduct == Conduct::Confuses);
                Err(FabricError::Unsupported)
            }
            _ => Err(FabricError::Unsupported),
        };
        if channel.send(&FromFabric::Reply(Reply { number, result }), &[]).is_err() {
            return;
        }
    }
}

fn connect(conduct: Conduct) -> (Arc<Client>, JoinHandle<Option<String>>, Arc<AtomicUsize>) {
    let alone = Arc::new(AtomicUsize::new(0));
    let (client, reader) = Client::connect(fabric(conduct, &alone), STORE).unwrap();
    let reader = thread::spawn(move || reader.run(|_| {}));
    client.open_channels(CHANNELS).unwrap();
    (client, reader, alone)
}

fn writes() -> orders::Writes {
    orders::Writes { name: "fw".parse().unwrap() }
}

/// More threads than channels: each gets its own answers, whichever channel has its order.
#[test]
fn many_threads_share_the_channels() {
    const THREADS: usize = 3 * CHANNELS;
    const ORDERS: usize = 2_000;
    let (client, reader, alone) = connect(Conduct::Answers);
    thread::scope(|scope| {
        for number in 0..THREADS {
            let client = &client;
            scope.spawn(move || {
                for order in 0..ORDERS {
                    match (number + order) % 4 {
                        0 => assert_eq!(client.ask(writes()).err(), Some(FabricError::Unsupported)),
                        // Its answer is dropped.
                        1 if number < 2 && order < 2 => drop(client.begin(orders::Ping {}, &[]).unwrap()),
                        _ => assert_eq!(client.ask(orders::Ping {}), Ok(())),
                    }
                }
            });
        }
    });
    assert!(alone.load(Ordering::SeqCst) > 0);
    client.close();
    assert_eq!(reader.join().unwrap(), None);
    assert_eq!(client.ask(orders::Ping {}), Err(FabricError::Disconnected));
}

#[test]
fn an_earlier_fabric_gets_all_orders_on_one_channel() {
    let (client, _reader, alone) = connect(Conduct::Earlier);
    assert_eq!(client.ask(orders::Ping {}), Ok(()));
    assert!(client.begin_alone(orders::Ping {}).unwrap().is_err());
    assert_eq!(alone.load(Ordering::SeqCst), 0);
}

/// Who waits on any channel learns that the fabric has ended, and no later than that no orders are taken.
#[test]
fn the_end_of_the_fabric_ends_the_waits() {
    for conduct in [Conduct::Ends, Conduct::Confuses] {
        let (client, reader, _) = connect(conduct);
        let (send, answers) = sync_channel(2 * CHANNELS);
        let together = Barrier::new(2 * CHANNELS);
        thread::scope(|scope| {
            for _ in 0..2 * CHANNELS {
                let (client, send, together) = (&client, send.clone(), &together);
                scope.spawn(move || {
                    together.wait();
                    let answer = client.ask(writes()).err();
                    assert_eq!(client.ask(orders::Ping {}), Err(FabricError::Disconnected));
                    send.send(answer).unwrap();
                });
            }
        });
        let answers: Vec<_> = answers.try_iter().collect();
        assert_eq!(answers, vec![Some(FabricError::Disconnected); 2 * CHANNELS], "{conduct:?}");
        let why = reader.join().unwrap();
        let expected = (conduct == Conduct::Confuses).then(|| "it sends what was not asked for".to_string());
        assert_eq!(why, expected);
    }
}

/// A channel whose order was abandoned is used again when the answer has come.
#[test]
fn abandoned_orders_keep_no_channel() {
    let (client, _reader, alone) = connect(Conduct::Answers);
    let rounds = 5;
    for round in 0..rounds {
        let pending: Vec<_> = (0..CHANNELS).map(|_| client.begin_alone(orders::Ping {}).unwrap()).collect();
        assert!(pending.iter().all(Result::is_ok), "{round}");
        assert!(client.begin_alone(orders::Ping {}).unwrap().is_err());
        for pending in pending.iter().flatten() {
            let asked = rustix::event::PollFlags::IN;
            let mut ready = [rustix::event::PollFd::from_borrowed_fd(pending.as_fd(), asked)];
            rustix::event::poll(&mut ready, None).unwrap();
        }
        drop(pending);
        assert_eq!(client.ask(orders::Ping {}), Ok(()));
    }
    assert_eq!(alone.load(Ordering::SeqCst), rounds * (CHANNELS + 1));
}

#[test]
fn an_answer_is_waited_for_at_its_descriptor() {
    let (client, reader, alone) = connect(Conduct::Answers);
    let pending = client.begin_alone(orders::Ping {}).unwrap().expect("a channel");
    let mut ready = [rustix::event::PollFd::from_borrowed_fd(pending.as_fd(), rustix::event::PollFlags::IN)];
    rustix::event::poll(&mut ready, None).unwrap();
    assert_eq!(client.wait_alone(pending), Ok(()));
    // It is used again.
    for _ in 0..2 * CHANNELS {
        let pending = client.begin_alone(orders::Ping {}).unwrap().expect("a channel");
        let answer = client.wait_briefly(pending);
        assert_eq!(answer.unwrap_or_else(|pending| client.wait_alone(pending)), Ok(()));
    }
    assert_eq!(alone.load(Ordering::SeqCst), 1 + 2 * CHANNELS);
    client.close();
    assert_eq!(reader.join().unwrap(), None);
}
