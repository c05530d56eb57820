//! A client of `quinn-proto` that a test drives, and a server that serves one connection of it.

use super::*;
use std::cell::RefCell;

/// The bound of waiting for an event.
const MAX_WAIT: Duration = Duration::from_secs(20);

/// The client.
pub(super) struct Peer {
    endpoint: quinn_proto::Endpoint,
    connection: quinn_proto::Connection,
    socket: UdpSocket,
    server: SocketAddr,
}

impl Peer {
    /// Connects, and allows so many unidirectional streams of the server.
    pub(super) fn connect(server: SocketAddr, streams: u32) -> Self {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from(CERTIFICATE)).unwrap();
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = rustls::ClientConfig::builder_with_provider(provider);
        let builder = builder.with_protocol_versions(&[&rustls::version::TLS13]).unwrap();
        let mut tls = builder.with_root_certificates(roots).with_no_client_auth();
        tls.alpn_protocols = vec![PROTOCOL.to_vec()];
        let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).unwrap()));
        let mut transport = quinn_proto::TransportConfig::default();
        transport.max_concurrent_uni_streams(streams.into());
        config.transport_config(Arc::new(transport));
        let mut endpoint =
            quinn_proto::Endpoint::new(Arc::new(EndpointConfig::default()), None, true, None);
        let (_, connection) =
            endpoint.connect(Instant::now(), config, server, "localhost").unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
        let mut peer = Self { endpoint, connection, socket, server };
        peer.until(|_, event| matches!(event?, quinn_proto::Event::Connected).then_some(()));
        peer
    }

    pub(super) fn local_address(&self) -> SocketAddr {
        self.socket.local_addr().unwrap()
    }

    /// Exchanges datagrams until `done`, which is called with each event, and without one in between.
    pub(super) fn until<T>(
        &mut self,
        mut done: impl FnMut(&mut quinn_proto::Connection, Option<quinn_proto::Event>) -> Option<T>,
    ) -> T {
        let end = Instant::now() + MAX_WAIT;
        while Instant::now() < end {
            loop {
                let event = self.connection.poll();
                let is_last = event.is_none();
                if let Some(result) = done(&mut self.connection, event) {
                    self.send();
                    return result;
                }
                if is_last {
                    break;
                }
            }
            self.send();
            self.receive();
        }
        panic!("the server does not do what it should");
    }

    /// Waits for the end of the connection; the reason.
    pub(super) fn until_lost(&mut self) -> String {
        self.until(|_, event| match event? {
            quinn_proto::Event::ConnectionLost { reason } => Some(reason.to_string()),
            _ => None,
        })
    }

    fn send(&mut self) {
        let mut output = Vec::new();
        while self.connection.poll_transmit(Instant::now(), 1, &mut output).is_some() {
            self.socket.send_to(&output, self.server).unwrap();
            output.clear();
        }
    }

    fn receive(&mut self) {
        if self.connection.poll_timeout().is_some_and(|at| at <= Instant::now()) {
            self.connection.handle_timeout(Instant::now());
        }
        let (mut datagram, mut output) = ([0; 2048], Vec::new());
        if let Ok((count, from)) = self.socket.recv_from(&mut datagram) {
            let data = datagram[..count].into();
            let event = self.endpoint.handle(Instant::now(), from, None, None, data, &mut output);
            if let Some(DatagramEvent::ConnectionEvent(_, event)) = event {
                self.connection.handle_event(event);
            }
        }
        while let Some(event) = self.connection.poll_endpoint_events() {
            let handle = quinn_proto::ConnectionHandle(0);
            if let Some(event) = self.endpoint.handle_event(handle, event) {
                self.connection.handle_event(event);
            }
        }
    }
}

/// Hands its connections to a test.
#[derive(Default)]
struct Accepts {
    accepted: RefCell<Vec<Rc<Connection>>>,
    changed: outboard_reactor::Event,
}

impl Application for Accepts {
    fn admits(&self, _: SocketAddr) -> bool {
        true
    }

    fn accepted(&self, connection: Rc<Connection>) {
        self.accepted.borrow_mut().push(connection);
        self.changed.set();
    }

    fn failed(&self) {}
}

/// Serves the connection of a client that runs on a thread meanwhile; what both return.
pub(super) fn serve<S: 'static, C: Send + 'static>(
    settings: Settings,
    serve: impl AsyncFnOnce(&Endpoint, Rc<Connection>) -> S + 'static,
    client: impl FnOnce(SocketAddr) -> C + Send + 'static,
) -> (S, C) {
    run(async move {
        let sockets = bind("127.0.0.1:0".parse().unwrap(), 1).unwrap();
        let member = members(sockets, &[]).unwrap().pop().unwrap();
        let application = Rc::new(Accepts::default());
        let endpoint = Endpoint::start(member, &settings, application.clone()).unwrap();
        let server = endpoint.local_address();
        let client = thread::spawn(move || client(server));
        application.changed.wait().await;
        let connection = application.accepted.take().remove(0);
        let served = serve(&endpoint, connection).await;
        let of_client = outboard_reactor::blocking(move || client.join().unwrap()).await;
        endpoint.stop();
        (served, of_client)
    })
    .unwrap()
}

/// Waits until `done`, which is called with each event, and without one in between.
pub(super) async fn until<T>(
    connection: &Connection,
    mut done: impl FnMut(Option<Event>) -> Option<T>,
) -> T {
    poll_fn(|_| {
        loop {
            let event = connection.next_event();
            let is_last = event.is_none();
            if let Some(result) = done(event) {
                return Poll::Ready(result);
            }
            if is_last && connection.poll_changed().is_pending() {
                return Poll::Pending;
            }
        }
    })
    .await
}
