//! Clients of one group in loops on several threads, against peers that keep their connections.

use super::*;
use crate::{Client, Error, Kind, Request, Response, Url};
use outboard_reactor::{MailboxSender, Reply, mailbox, now_ms, reply, run, spawn, yield_now};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::pin::Pin;
use std::thread;

/// A peer that answers each request of each connection.
fn peer() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            thread::spawn(move || answer(stream));
        }
    });
    address
}

fn answer(mut stream: TcpStream) {
    let mut piece = [0; 4096];
    while let Ok(1..) = stream.read(&mut piece) {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    }
}

type Act = Box<dyn FnOnce(Rc<Client>) -> Pin<Box<dyn Future<Output = ()>>> + Send>;

/// A thread with a loop and a client of the group, until this is dropped.
struct OtherLoop(MailboxSender<Option<Act>>);

impl OtherLoop {
    fn start(group: &Arc<ClientGroup>) -> Self {
        let (sender, acts) = mailbox::<Option<Act>>();
        let group = group.clone();
        thread::spawn(move || {
            run(async move {
                let client = Client::of(&group);
                while let Some(act) = acts.next().await {
                    spawn(act(client.clone()));
                }
            })
        });
        Self(sender)
    }

    /// Does something with the client.
    fn act<F: Future<Output = T> + 'static, T: Send + 'static>(
        &self,
        act: impl FnOnce(Rc<Client>) -> F + Send + 'static,
    ) -> Reply<T> {
        let (back, result) = reply();
        let act: Act =
            Box::new(move |client| Box::pin(async move { back.send(act(client).await) }));
        assert!(self.0.send(Some(act)).is_ok());
        result
    }

    /// Fetches from a peer.
    async fn fetch(&self, from: SocketAddr) -> Result<(), Error> {
        self.act(async move |client| read(begin(&client, from).await?).await).await.unwrap()
    }
}

impl Drop for OtherLoop {
    fn drop(&mut self) {
        let _ = self.0.send(None);
    }
}

async fn begin(client: &Rc<Client>, from: SocketAddr) -> Result<Response, Error> {
    let url = Url::parse(format!("http://{from}/").as_bytes())?;
    client.send(Request::get(url)).await
}

async fn read(mut response: Response) -> Result<(), Error> {
    let mut body = Vec::new();
    while response.read(&mut body).await? {}
    assert_eq!(body, b"ok");
    Ok(())
}

async fn idle(other: &OtherLoop) -> usize {
    other.act(async |client| client.gauges().idle).await.unwrap()
}

#[test]
fn an_idle_connection_of_another_loop_closes_for_a_needed_one() {
    run(async {
        let group = ClientGroup::new(Settings { connections: 1, ..Settings::default() });
        let (own, other, peers) = (Client::of(&group), OtherLoop::start(&group), [peer(), peer()]);
        for _ in 0..3 {
            other.fetch(peers[0]).await.unwrap();
            assert_eq!((idle(&other).await, own.gauges().idle), (1, 0));
            let begin_ms = now_ms();
            read(begin(&own, peers[1]).await.unwrap()).await.unwrap();
            assert!(now_ms() - begin_ms < 4_000, "it did not wait for a time-out");
            assert_eq!((idle(&other).await, own.gauges().idle), (0, 1));
        }
        let busy = begin(&own, peers[1]).await.unwrap();
        assert_eq!(other.fetch(peers[0]).await.unwrap_err().kind, Kind::Busy);
        read(busy).await.unwrap();
    })
    .unwrap();
}

#[test]
fn a_host_has_no_more_connections_than_requests_in_all_loops() {
    run(async {
        let settings =
            Settings { requests_per_host: 1, responses_per_host: 0, ..Settings::default() };
        let group = ClientGroup::new(settings);
        let (own, other, from) = (Client::of(&group), OtherLoop::start(&group), peer());
        for _ in 0..3 {
            other.fetch(from).await.unwrap();
            read(begin(&own, from).await.unwrap()).await.unwrap();
            assert_eq!((idle(&other).await, own.gauges().idle), (0, 1));
        }
        other.fetch(from).await.unwrap();
        assert_eq!((idle(&other).await, own.gauges().idle), (1, 0));
    })
    .unwrap();
}

#[test]
fn a_client_that_ends_gives_its_places_back() {
    run(async {
        let group = ClientGroup::new(Settings { connections: 1, ..Settings::default() });
        let (own, other, from) = (Client::of(&group), OtherLoop::start(&group), peer());
        other.fetch(from).await.unwrap();
        drop(other);
        read(begin(&own, from).await.unwrap()).await.unwrap();
    })
    .unwrap();
}

#[test]
fn requests_of_two_loops_wait_for_each_other() {
    run(async {
        let settings = Settings {
            requests_per_host: 1,
            waiting_per_host: 1,
            wait_ms: 60_000,
            ..Settings::default()
        };
        let group = ClientGroup::new(settings);
        let (own, other, from) = (Client::of(&group), OtherLoop::start(&group), peer());
        let first = begin(&own, from).await.unwrap();
        let waiting = other.act(async move |client| read(begin(&client, from).await?).await);
        let limits = group.origin(&format!("http://{from}"));
        while limits.waiting() == 0 {
            yield_now().await;
        }
        assert_eq!(begin(&own, from).await.unwrap_err().kind, Kind::Busy, "the queue is full");
        assert_eq!((own.gauges().under_way, group.lock().len()), (1, 1));
        read(first).await.unwrap();
        assert!(waiting.await.unwrap().is_ok());
        assert_eq!(own.gauges().under_way, 0);
    })
    .unwrap();
}

#[test]
fn many_loops_share_few_connections_and_all_are_served() {
    const LOOPS: usize = 3;
    run(async {
        let group = ClientGroup::new(Settings { connections: LOOPS, ..Settings::default() });
        let peers = [peer(), peer(), peer(), peer()];
        let loops: Vec<_> = (0..LOOPS).map(|_| OtherLoop::start(&group)).collect();
        let served = loops.iter().map(|one| {
            one.act(async move |client| {
                for number in 0..60 {
                    read(begin(&client, peers[number % peers.len()]).await?).await?;
                }
                Ok::<_, Error>(())
            })
        });
        for served in served.collect::<Vec<_>>() {
            served.await.unwrap().unwrap();
        }
    })
    .unwrap();
}
