//! [`Authority`]: issues the certificates of the tests, as files of a directory; and handshakes in memory.

use crate::{CertificateFiles, ServerSettings, SessionFacts, Trust, client_settings};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose,
    RevokedCertParams, SerialNumber, date_time_ymd,
};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, Connection, Error, RootCertStore, ServerConnection};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(super) fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// See the module.
pub(super) struct Authority {
    directory: PathBuf,
    issuer: Issuer<'static, KeyPair>,
    root: CertificateDer<'static>,
}

/// A certificate of a client.
pub(super) struct Client<'a> {
    pub(super) serial: u8,
    pub(super) years: (i32, i32),
    pub(super) purpose: ExtendedKeyUsagePurpose,
    pub(super) of: &'a Authority,
}

impl Authority {
    /// Its own certificate is `ca.pem`.
    pub(super) fn new(name: &str) -> Self {
        let directory = format!("outboard-tls-{}-{name}", std::process::id());
        let directory = std::env::temp_dir().join(directory);
        fs::create_dir_all(&directory).unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().unwrap();
        let own = params.self_signed(&key).unwrap();
        fs::write(directory.join("ca.pem"), own.pem()).unwrap();
        Self { directory, issuer: Issuer::new(params, key), root: own.der().clone() }
    }

    pub(super) fn path(&self, file: &str) -> PathBuf {
        self.directory.join(file)
    }

    /// A certificate and its key in PEM.
    pub(super) fn issue(&self, names: &[&str]) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.use_authority_key_identifier_extension = true;
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }

    /// The same as files of a server.
    pub(super) fn files(&self, stem: &str, names: &[&str]) -> CertificateFiles {
        let (chain, key) = (self.path(&format!("{stem}.pem")), self.path(&format!("{stem}.key")));
        let (certificate, secret) = self.issue(names);
        fs::write(&chain, certificate).unwrap();
        fs::write(&key, secret).unwrap();
        CertificateFiles { chain, key, ocsp: None }
    }

    /// Writes a list that revokes these certificates until a year.
    pub(super) fn revoke(&self, file: &str, serials: &[u8], until: i32) {
        let revoked = |serial: &u8| RevokedCertParams {
            serial_number: SerialNumber::from(vec![*serial]),
            revocation_time: date_time_ymd(2001, 1, 1),
            reason_code: None,
            invalidity_date: None,
        };
        let list = CertificateRevocationListParams {
            this_update: date_time_ymd(2001, 1, 1),
            next_update: date_time_ymd(until, 1, 1),
            crl_number: SerialNumber::from(vec![1]),
            issuing_distribution_point: None,
            revoked_certs: serials.iter().map(revoked).collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        fs::write(self.path(file), list.signed_by(&self.issuer).unwrap().pem().unwrap()).unwrap();
    }

    pub(super) fn client(&self, serial: u8) -> Client<'_> {
        let purpose = ExtendedKeyUsagePurpose::ClientAuth;
        Client { serial, years: (2001, 4000), purpose, of: self }
    }

    /// Settings of a client that trusts the authority, with a certificate or without.
    pub(super) fn settings(&self, client: Option<&Client<'_>>) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(self.root.clone()).unwrap();
        let builder = ClientConfig::builder_with_provider(aws_lc_rs::default_provider().into())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let Some(client) = client else { return Arc::new(builder.with_no_client_auth()) };
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "Ann");
        params.serial_number = Some(SerialNumber::from(vec![client.serial]));
        params.not_before = date_time_ymd(client.years.0, 1, 1);
        params.not_after = date_time_ymd(client.years.1, 1, 1);
        params.extended_key_usages = vec![client.purpose.clone()];
        let certificate = params.signed_by(&key, &client.of.issuer).unwrap();
        let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap();
        Arc::new(builder.with_client_auth_cert(vec![certificate.der().clone()], key).unwrap())
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Settings of a client that trusts everything.
pub(super) fn trusting(protocols: &[&[u8]]) -> Arc<ClientConfig> {
    Arc::new(client_settings(Trust::DangerousNoVerification, protocols).unwrap())
}

/// Both ends of a connection.
pub(super) struct Pair {
    pub(super) client: Connection,
    pub(super) server: Connection,
}

impl Pair {
    pub(super) fn new(client: &Arc<ClientConfig>, name: &str, server: &ServerSettings) -> Self {
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let client = ClientConnection::new(client.clone(), name).unwrap();
        let server = ServerConnection::new(server.rustls.clone()).unwrap();
        Self { client: client.into(), server: server.into() }
    }

    /// The same after the handshake, and the tickets that follow it.
    pub(super) fn connected(
        client: &Arc<ClientConfig>,
        name: &str,
        server: &ServerSettings,
    ) -> Result<Self, Error> {
        let mut pair = Self::new(client, name, server);
        loop {
            let is_complete = !pair.client.is_handshaking() && !pair.server.is_handshaking();
            receive(&mut pair.server, &sent(&mut pair.client))?;
            receive(&mut pair.client, &sent(&mut pair.server))?;
            if is_complete {
                return Ok(pair);
            }
        }
    }

    pub(super) fn facts(&self, settings: &ServerSettings) -> io::Result<SessionFacts> {
        let Connection::Server(server) = &self.server else { panic!("it is a server") };
        SessionFacts::of(server, settings)
    }

    /// The certificate that the client got.
    pub(super) fn certificate(&self) -> CertificateDer<'static> {
        self.client.peer_certificates().unwrap()[0].clone()
    }
}

pub(super) fn sent(from: &mut Connection) -> Vec<u8> {
    let mut bytes = Vec::new();
    while from.wants_write() {
        from.write_tls(&mut bytes).unwrap();
    }
    bytes
}

pub(super) fn receive(to: &mut Connection, mut bytes: &[u8]) -> Result<(), Error> {
    while !bytes.is_empty() {
        to.read_tls(&mut bytes).unwrap();
        to.process_new_packets()?;
    }
    Ok(())
}

pub(super) fn certificate_in(file: &Path) -> CertificateDer<'static> {
    CertificateDer::from_pem_file(file).unwrap()
}
