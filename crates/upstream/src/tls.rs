//! TLS over a stream of the loop (RFC 8446), by rustls.
//!
//! [`Tls`] is one session; [`Trust`] makes the settings of all of them, once for each way of
//! calling. Invariants: an end of the stream without the peer's `close_notify` is an error and
//! never an end of data; certificates are checked unless the call says otherwise.

use crate::error::{Error, Kind};
use outboard_reactor::{Stream, blocking};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use std::cell::RefCell;
use std::io::{self, BufRead, IoSlice, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::Poll;

/// Room for a read of records.
const READ_BYTES: usize = 16 * 1024 + 512;

/// How a call wants its TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wish {
    pub(crate) verify: bool,
    pub(crate) http2: bool,
}

/// Settings by wish, made when first needed: reading the system's certificates takes a while.
#[derive(Debug)]
pub(crate) struct Trust {
    ca_file: Option<PathBuf>,
    made: RefCell<Vec<(Wish, Arc<ClientConfig>)>>,
}

impl Trust {
    pub(crate) fn new(ca_file: Option<PathBuf>) -> Self {
        Self { ca_file, made: RefCell::default() }
    }

    async fn settings(&self, wish: Wish) -> Result<Arc<ClientConfig>, Error> {
        if let Some((_, known)) = self.made.borrow().iter().find(|(theirs, _)| *theirs == wish) {
            return Ok(known.clone());
        }
        let ca_file = self.ca_file.clone();
        let made = blocking(move || make(wish, ca_file.as_deref())).await;
        let made = Arc::new(made.map_err(|why| Error::new(Kind::Tls, why))?);
        self.made.borrow_mut().push((wish, made.clone()));
        Ok(made)
    }

    /// Begins a session and shakes hands.
    pub(crate) async fn connect(
        &self,
        stream: Stream,
        host: &str,
        wish: Wish,
    ) -> Result<Tls, Error> {
        let settings = self.settings(wish).await?;
        let name = ServerName::try_from(host.to_owned())
            .map_err(|error| Error::new(Kind::Tls, format!("{host}: {error}")))?;
        let session = ClientConnection::new(settings, name)
            .map_err(|error| Error::new(Kind::Tls, format!("{host}: {error}")))?;
        let mut tls = Tls { stream, session, incoming: Vec::new(), outgoing: Vec::new() };
        std::future::poll_fn(|_| tls.poll_handshake())
            .await
            .map_err(|error| Error::new(Kind::Tls, format!("no TLS with {host}: {error}")))?;
        Ok(tls)
    }
}

fn make(wish: Wish, ca_file: Option<&Path>) -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let mut settings = if wish.verify {
        let roots = Arc::new(roots(ca_file)?);
        let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider).build();
        let verifier = verifier.map_err(|error| error.to_string())?;
        builder.with_webpki_verifier(verifier).with_no_client_auth()
    } else {
        let anyone = Arc::new(Anyone { algorithms: provider.signature_verification_algorithms });
        builder.dangerous().with_custom_certificate_verifier(anyone).with_no_client_auth()
    };
    settings.alpn_protocols = match wish.http2 {
        true => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        false => vec![b"http/1.1".to_vec()],
    };
    Ok(settings)
}

/// The system's certificates (`SSL_CERT_FILE` and `SSL_CERT_DIR` are obeyed) and those of the
/// configuration.
fn roots(ca_file: Option<&Path>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = ca_file {
        let broken = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        for certificate in CertificateDer::pem_file_iter(path).map_err(|error| broken(&error))? {
            let certificate = certificate.map_err(|error| broken(&error))?;
            roots.add(certificate).map_err(|error| broken(&error))?;
        }
    }
    if roots.is_empty() {
        return Err("no certificate authorities are installed; install ca-certificates or set \
                    upstream.ca"
            .to_owned());
    }
    Ok(roots)
}

/// Takes any certificate, as a call with `verify = false` asks; signatures are checked all the
/// same, so that the peer at least owns the key of what it shows.
#[derive(Debug)]
struct Anyone {
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// One session over one connection.
#[derive(Debug)]
pub(crate) struct Tls {
    stream: Stream,
    session: ClientConnection,
    /// Records that came and that the session has not taken yet.
    incoming: Vec<u8>,
    /// Records that the socket has not taken yet.
    outgoing: Vec<u8>,
}

impl Tls {
    pub(crate) fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Whether the peer chose HTTP/2 (RFC 7301).
    pub(crate) fn is_http2(&self) -> bool {
        self.session.alpn_protocol() == Some(b"h2")
    }

    fn poll_handshake(&mut self) -> Poll<io::Result<()>> {
        while self.session.is_handshaking() {
            let flushed = self.poll_flush()?;
            if !self.session.wants_read() {
                std::task::ready!(flushed);
                continue;
            }
            if std::task::ready!(self.poll_receive())? == 0 {
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
        }
        self.poll_flush()
    }

    /// Takes records from the socket into the session; 0 at the end of the stream.
    fn poll_receive(&mut self) -> Poll<io::Result<usize>> {
        if self.incoming.is_empty() {
            loop {
                std::task::ready!(self.stream.source().poll_readable());
                self.incoming.reserve(READ_BYTES);
                if self.stream.try_read(&mut self.incoming)?.is_some() {
                    break;
                }
            }
        }
        let taken = self.session.read_tls(&mut &self.incoming[..])?;
        self.incoming.drain(..taken);
        self.session
            .process_new_packets()
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        Poll::Ready(Ok(taken))
    }

    /// Appends what there is; 0 is the end that the peer announced.
    pub(crate) fn poll_read(&mut self, out: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        loop {
            let mut plain = self.session.reader();
            match plain.fill_buf() {
                Ok(bytes) => {
                    let count = bytes.len();
                    out.extend_from_slice(bytes);
                    plain.consume(count);
                    return Poll::Ready(Ok(count));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
            let _ = std::task::ready!(self.poll_receive())?;
            // Answers to the peer's key updates and alerts.
            let _ = self.poll_flush()?;
        }
    }

    /// Takes data to send, as much as there is room for.
    pub(crate) fn poll_write(&mut self, data: &[u8]) -> Poll<io::Result<usize>> {
        // What was taken before goes first, so that the session's buffer stays bounded.
        std::task::ready!(self.poll_flush())?;
        let taken = self.session.writer().write(data)?;
        let _ = self.poll_flush()?;
        Poll::Ready(Ok(taken))
    }

    /// Hands everything over to the socket.
    pub(crate) fn poll_flush(&mut self) -> Poll<io::Result<()>> {
        loop {
            while self.session.wants_write() {
                self.session.write_tls(&mut self.outgoing)?;
            }
            if self.outgoing.is_empty() {
                return Poll::Ready(Ok(()));
            }
            match self.stream.try_write(&[IoSlice::new(&self.outgoing)])? {
                Some(count) => drop(self.outgoing.drain(..count)),
                None => std::task::ready!(self.stream.source().poll_writable()),
            }
        }
    }

    /// Says that nothing more will be sent, as far as the socket takes it at once.
    pub(crate) fn close(&mut self) {
        self.session.send_close_notify();
        let _ = self.poll_flush();
    }
}

impl Drop for Tls {
    fn drop(&mut self) {
        self.close();
    }
}
