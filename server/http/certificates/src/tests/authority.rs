//! [`Authority`]: an authority that speaks ACME over HTTP, and can be made to fail.
//!
//! It verifies every request as RFC 8555 6 requires: its signature, its URL, and that its nonce is used once.

use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use outboard_upstream::testing::Upstream;
use rcgen::{
    CertificateParams, Issuer, KeyPair, PKCS_ECDSA_P256_SHA256, PublicKeyData, SignatureAlgorithm,
};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::{Duration, SystemTime};

/// See the module.
pub(super) struct Authority {
    _upstream: Upstream,
    pub(super) url: String,
    pub(super) state: Rc<RefCell<State>>,
}

/// Whether a check of a kind succeeds.
type Check = Box<dyn Fn(&str) -> bool>;

/// What it has received, and how it responds.
#[derive(Default)]
pub(super) struct State {
    /// Paths of requests, without those for nonces.
    pub(super) paths: Vec<String>,
    /// Payloads of the requests that were signed, by path.
    pub(super) payloads: Vec<(String, Value)>,
    /// Responses to the next requests of these paths: status, header lines and body.
    pub(super) faults: Vec<(&'static str, u16, &'static str, &'static str)>,
    /// Requests that violate RFC 8555.
    pub(super) violations: Vec<String>,
    /// Another name or key than that of the order, for its certificate.
    pub(super) issues_for: Option<&'static str>,
    pub(super) has_other_key: bool,
    /// By default, every check succeeds.
    pub(super) checks: Option<Check>,
    nonces: u32,
    used: BTreeSet<String>,
    account_key: Vec<u8>,
    name: String,
    pub(super) order: &'static str,
    check: Option<bool>,
    certificate: String,
}

/// The public key of a signing request.
struct Point(Vec<u8>);

impl PublicKeyData for Point {
    fn der_bytes(&self) -> &[u8] {
        &self.0
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &PKCS_ECDSA_P256_SHA256
    }
}

fn decoded(text: &Value) -> Vec<u8> {
    URL_SAFE_NO_PAD.decode(text.as_str().unwrap_or_default()).unwrap_or_default()
}

impl Authority {
    pub(super) fn start() -> Self {
        let state = Rc::<RefCell<State>>::default();
        state.borrow_mut().order = "pending";
        let shared = state.clone();
        let upstream = Upstream::start(move |request| shared.borrow_mut().respond(request));
        let url = format!("http://127.0.0.1:{}/directory", upstream.port);
        Self { _upstream: upstream, url, state }
    }

    pub(super) fn fail(
        &self,
        path: &'static str,
        status: u16,
        headers: &'static str,
        body: &'static str,
    ) {
        self.state.borrow_mut().faults.push((path, status, headers, body));
    }

    pub(super) fn requests(&self, path: &str) -> usize {
        self.state.borrow().paths.iter().filter(|one| *one == path).count()
    }

    /// The payload of the last signed request of a path.
    pub(super) fn payload(&self, path: &str) -> Value {
        let state = self.state.borrow();
        let found = state.payloads.iter().rfind(|(of, _)| of == path);
        found.unwrap_or_else(|| panic!("no request for {path}")).1.clone()
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(self.state.borrow().violations, Vec::<String>::new());
        }
    }
}

impl State {
    fn respond(&mut self, request: &str) -> String {
        let (head, body) = request.split_once("\r\n\r\n").unwrap_or((request, ""));
        let mut line = head.split(' ');
        let (method, path) = (line.next().unwrap_or_default(), line.next().unwrap_or_default());
        let host = head.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("host").then_some(value)
        });
        let base = format!("http://{}", host.unwrap_or_default());
        if path != "/nonce" {
            self.paths.push(path.to_owned());
        }
        let payload = if method == "POST" { self.verified(&base, path, body) } else { Value::Null };
        if let Some(at) = self.faults.iter().position(|(of, ..)| *of == path) {
            let (_, status, headers, body) = self.faults.remove(at);
            return self.reply(status, headers, body);
        }
        let (headers, body) = self.result(&base, path, &payload);
        self.reply(200, &headers, &body)
    }

    fn reply(&mut self, status: u16, headers: &str, body: &str) -> String {
        self.nonces += 1;
        let (nonce, length) = (self.nonces, body.len());
        format!(
            "HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Length: {length}\r\n\
             Replay-Nonce: nonce-{nonce}\r\n{headers}\r\n{body}"
        )
    }

    /// The payload of a request that is signed.
    fn verified(&mut self, base: &str, path: &str, body: &str) -> Value {
        let body: Value = serde_json::from_str(body).unwrap_or_default();
        let head: Value = serde_json::from_slice(&decoded(&body["protected"])).unwrap_or_default();
        if let Some(jwk) = head.get("jwk") {
            self.account_key = [vec![4], decoded(&jwk["x"]), decoded(&jwk["y"])].concat();
        }
        let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
        let message = format!("{}.{}", text("protected"), text("payload"));
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, &self.account_key);
        let nonce = head["nonce"].as_str().unwrap_or_default().to_owned();
        let number = nonce.strip_prefix("nonce-").and_then(|number| number.parse::<u32>().ok());
        let by_key = path == "/account";
        for (is_valid, what) in [
            (key.verify(message.as_bytes(), &decoded(&body["signature"])).is_ok(), "signature"),
            (head["url"] == format!("{base}{path}"), "URL"),
            (number.is_some_and(|number| number <= self.nonces), "unknown nonce"),
            (self.used.insert(nonce), "nonce that was used"),
            (head.get("jwk").is_some() == by_key, "key"),
            (by_key || head["kid"] == format!("{base}/account/1"), "account"),
        ] {
            if !is_valid {
                self.violations.push(format!("{path}: {what}: {head}"));
            }
        }
        let payload = serde_json::from_slice(&decoded(&body["payload"])).unwrap_or_default();
        self.payloads.push((path.to_owned(), payload));
        self.payloads[self.payloads.len() - 1].1.clone()
    }

    fn result(&mut self, base: &str, path: &str, payload: &Value) -> (String, String) {
        let at = |path: &str| format!("{base}{path}");
        let located = |path: &str| format!("Location: {base}{path}\r\n");
        match path {
            "/directory" => {
                let directory = json!({
                    "newNonce": at("/nonce"), "newAccount": at("/account"),
                    "newOrder": at("/order"), "renewalInfo": at("/renewal/"),
                });
                (String::new(), directory.to_string())
            }
            "/account" => (located("/account/1"), "{}".to_owned()),
            "/order" => {
                let name = &payload["identifiers"][0]["value"];
                self.name = name.as_str().unwrap_or_default().to_owned();
                (self.order, self.check) = ("pending", None);
                (located("/order/1"), self.order_object(base))
            }
            "/order/1" => (String::new(), self.order_object(base)),
            "/authorization" => {
                let status = match self.check {
                    None => "pending",
                    Some(true) => "valid",
                    Some(false) => "invalid",
                };
                let challenge = |kind: &str| {
                    let error = (self.check == Some(false))
                        .then(|| json!({ "type": "urn:ietf:params:acme:error:dns", "detail": "no address" }));
                    let url = at(&format!("/check/{kind}"));
                    json!({ "type": kind, "url": url, "token": "token-1", "error": error })
                };
                let challenges =
                    [challenge("tls-alpn-01"), challenge("http-01"), challenge("dns-01")];
                (String::new(), json!({ "status": status, "challenges": challenges }).to_string())
            }
            "/finalize" => {
                self.sign(&decoded(&payload["csr"]));
                self.order = "valid";
                (String::new(), self.order_object(base))
            }
            "/certificate" => (String::new(), self.certificate.clone()),
            check if check.starts_with("/check/") => {
                let kind = check.trim_start_matches("/check/");
                let is_valid = self.checks.as_ref().is_none_or(|checks| checks(kind));
                self.check = Some(is_valid);
                self.order = if is_valid { "ready" } else { "invalid" };
                (String::new(), "{}".to_owned())
            }
            _ => (String::new(), "{}".to_owned()),
        }
    }

    fn order_object(&self, base: &str) -> String {
        json!({
            "status": self.order, "authorizations": [format!("{base}/authorization")],
            "finalize": format!("{base}/finalize"), "certificate": format!("{base}/certificate"),
        })
        .to_string()
    }

    /// Issues the certificate for the key of a signing request, which is found by its encoding.
    fn sign(&mut self, request: &[u8]) {
        const BIT_STRING_OF_A_POINT: [u8; 4] = [3, 0x42, 0, 4];
        let at = request.windows(4).position(|bytes| bytes == BIT_STRING_OF_A_POINT);
        let point = at.map(|at| request[at + 3..at + 68].to_vec()).unwrap_or_default();
        let (own, other) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
        let name = self.issues_for.unwrap_or(&self.name).to_owned();
        let mut params = CertificateParams::new([name]).unwrap();
        let now = SystemTime::now();
        params.not_before = (now - Duration::from_secs(86_400)).into();
        params.not_after = (now + Duration::from_secs(90 * 86_400)).into();
        params.use_authority_key_identifier_extension = true;
        let issuer = Issuer::new(CertificateParams::default(), own);
        let certificate = match self.has_other_key {
            true => params.signed_by(&other, &issuer),
            false => params.signed_by(&Point(point), &issuer),
        };
        self.certificate = certificate.unwrap().pem();
    }
}
