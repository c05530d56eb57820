//! [`Client`]: an account at an authority, and its requests.
//!
//! One for each authority; several names use it at the same time.

use super::account_key::{AccountKey, Signer};
use super::failure::Failure;
use super::messages::{Authorization, Directory, OrderObject, RenewalInfo};
use super::problem::Problem;
use outboard_config::ExternalAccount;
use outboard_upstream::{Client as HttpClient, Request, RequestHeaders, Response, Url};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::SystemTime;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// The largest reply: a certificate chain.
pub(crate) const MAX_BODY_BYTES: u64 = 512 << 10;
/// How often a request is sent whose nonces are rejected.
const MAX_NONCES: u32 = 40;
/// Unused nonces of earlier replies.
const MAX_SPARE_NONCES: usize = 16;
const TIMEOUT_MS: u64 = 30_000;

/// See the module.
#[derive(Debug)]
pub(crate) struct Client {
    http: Rc<HttpClient>,
    directory: Directory,
    pub(crate) key: AccountKey,
    account: RefCell<String>,
    nonces: RefCell<Vec<String>>,
}

/// An order, with its URL and the pause that the authority requests before the next look.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) url: String,
    pub(crate) object: OrderObject,
    pub(crate) retry_after_s: Option<u64>,
}

/// A reply without an error.
struct Reply {
    location: Option<String>,
    retry_after_s: Option<u64>,
    body: Vec<u8>,
}

impl Client {
    /// Reads the directory of an authority, for the account with this URL, if there is one.
    pub(crate) async fn open(
        http: Rc<HttpClient>,
        directory: &str,
        key: AccountKey,
        account: Option<String>,
    ) -> Result<Self, Failure> {
        let reply = exchange(&http, request(directory, b"GET")?).await?;
        let directory = parse(&success(reply).await?.body)?;
        let account = RefCell::new(account.unwrap_or_default());
        Ok(Self { http, directory, key, account, nonces: RefCell::default() })
    }

    /// Creates the account, or finds the one that the key has; returns its URL (RFC 8555 7.3).
    pub(crate) async fn register(
        &self,
        email: Option<&str>,
        external: Option<&ExternalAccount>,
    ) -> Result<String, Failure> {
        let url = &self.directory.new_account;
        let mut payload = json!({ "termsOfServiceAgreed": true });
        if let Some(email) = email {
            payload["contact"] = json!([format!("mailto:{email}")]);
        }
        if let Some(account) = external {
            let binding = self.key.external_binding(url, &account.id, &account.key.0);
            payload["externalAccountBinding"] = binding.map_err(Failure::Own)?;
        }
        let reply = self.post(url, Signer::Key, Some(&payload)).await?;
        let account = reply.location.ok_or_else(|| unusable("there is no URL of the account"))?;
        self.account.replace(account.clone());
        Ok(account)
    }

    /// Places an order (RFC 8555 7.4). `replaces` identifies the certificate that it renews (RFC 9773 5).
    pub(crate) async fn order(
        &self,
        name: &str,
        profile: Option<&str>,
        replaces: Option<&str>,
    ) -> Result<Order, Failure> {
        let mut payload = json!({ "identifiers": [{ "type": "dns", "value": name }] });
        if let Some(profile) = profile {
            payload["profile"] = profile.into();
        }
        if let Some(id) = replaces.filter(|_| self.directory.renewal_info.is_some()) {
            payload["replaces"] = id.into();
        }
        let reply = self.post_signed(&self.directory.new_order, Some(&payload)).await?;
        let url = reply.location.clone().ok_or_else(|| unusable("there is no URL of the order"))?;
        order_of(url, reply)
    }

    /// The present state of an order.
    pub(crate) async fn find_order(&self, url: &str) -> Result<Order, Failure> {
        order_of(url.to_owned(), self.post_signed(url, None).await?)
    }

    /// An authorization, and the pause before the next look.
    pub(crate) async fn authorization(
        &self,
        url: &str,
    ) -> Result<(Authorization, Option<u64>), Failure> {
        let reply = self.post_signed(url, None).await?;
        Ok((parse(&reply.body)?, reply.retry_after_s))
    }

    /// Has the authority check a challenge.
    pub(crate) async fn start_check(&self, url: &str) -> Result<(), Failure> {
        self.post_signed(url, Some(&json!({}))).await.map(drop)
    }

    /// Requests the certificate of an order (RFC 8555 7.4).
    pub(crate) async fn finalize(&self, order: &Order, csr: &str) -> Result<Order, Failure> {
        let reply = self.post_signed(&order.object.finalize, Some(&json!({ "csr": csr }))).await?;
        order_of(order.url.clone(), reply)
    }

    /// The certificate chain in PEM.
    pub(crate) async fn certificate(&self, url: &str) -> Result<String, Failure> {
        let reply = self.post_signed(url, None).await?;
        String::from_utf8(reply.body).map_err(|_| unusable("the certificate is not text"))
    }

    /// When the authority recommends to renew a certificate: start and end, and the pause before the
    /// next look (RFC 9773 4); `None` if it has no such recommendations.
    pub(crate) async fn renewal_window(
        &self,
        id: &str,
    ) -> Result<Option<((u64, u64), Option<u64>)>, Failure> {
        let Some(url) = &self.directory.renewal_info else { return Ok(None) };
        let url = format!("{}/{id}", url.trim_end_matches('/'));
        let reply = exchange(&self.http, request(&url, b"GET")?).await?;
        let reply = success(reply).await?;
        let info: RenewalInfo = parse(&reply.body)?;
        let time = |text: &str| {
            let time = OffsetDateTime::parse(text, &Rfc3339)
                .map_err(|error| unusable(&error.to_string()))?;
            Ok::<_, Failure>(u64::try_from(time.unix_timestamp()).unwrap_or(0))
        };
        let window = (time(&info.suggested_window.start)?, time(&info.suggested_window.end)?);
        Ok(Some((window, reply.retry_after_s)))
    }

    async fn post_signed(&self, url: &str, payload: Option<&Value>) -> Result<Reply, Failure> {
        let account = self.account.borrow().clone();
        self.post(url, Signer::Account(&account), payload).await
    }

    async fn post(
        &self,
        url: &str,
        signer: Signer<'_>,
        payload: Option<&Value>,
    ) -> Result<Reply, Failure> {
        let mut tries = 0;
        loop {
            let nonce = self.nonce().await?;
            let mut request = request(url, b"POST")?;
            request.body = self.key.signed(url, &nonce, signer, payload).map_err(Failure::Own)?;
            request.headers.add(b"Content-Type", b"application/jose+json")?;
            let response = exchange(&self.http, request).await?;
            self.spare_nonce(&response);
            tries += 1;
            match success(response).await {
                Err(Failure::Refused(problem)) if problem.is("badNonce") && tries < MAX_NONCES => {}
                reply => return reply,
            }
        }
    }

    /// A nonce of an earlier reply, or a new one (RFC 8555 7.2).
    async fn nonce(&self) -> Result<String, Failure> {
        let spare = self.nonces.borrow_mut().pop();
        if let Some(nonce) = spare {
            return Ok(nonce);
        }
        let response = exchange(&self.http, request(&self.directory.new_nonce, b"HEAD")?).await?;
        nonce_of(&response).ok_or_else(|| unusable("there is no nonce"))
    }

    fn spare_nonce(&self, response: &Response) {
        let mut nonces = self.nonces.borrow_mut();
        if nonces.len() < MAX_SPARE_NONCES {
            nonces.extend(nonce_of(response));
        }
    }
}

fn order_of(url: String, reply: Reply) -> Result<Order, Failure> {
    Ok(Order { url, object: parse(&reply.body)?, retry_after_s: reply.retry_after_s })
}

fn nonce_of(response: &Response) -> Option<String> {
    let nonce = std::str::from_utf8(response.header(b"replay-nonce")?).ok()?;
    Some(nonce.to_owned())
}

fn request(url: &str, method: &[u8]) -> Result<Request, Failure> {
    let mut request = Request::get(Url::parse(url.as_bytes())?);
    request.method = method.to_vec();
    request.headers = RequestHeaders::default();
    request.timeout_ms = TIMEOUT_MS;
    request.max_body_bytes = MAX_BODY_BYTES;
    request.max_redirects = 0;
    request.http2 = false;
    Ok(request)
}

async fn exchange(http: &Rc<HttpClient>, request: Request) -> Result<Response, Failure> {
    Ok(http.send(request).await?)
}

async fn success(mut response: Response) -> Result<Reply, Failure> {
    let mut body = Vec::new();
    while response.read(&mut body).await? {}
    let text =
        |name: &[u8]| response.header(name).and_then(|value| std::str::from_utf8(value).ok());
    let retry_after_s = text(b"retry-after").and_then(seconds);
    if response.status >= 300 {
        return Err(Failure::Refused(Problem::of(response.status, &body, retry_after_s)));
    }
    Ok(Reply { location: text(b"location").map(str::to_owned), retry_after_s, body })
}

/// The value of `Retry-After`: seconds, or a time (RFC 9110 10.2.3).
fn seconds(value: &str) -> Option<u64> {
    value.parse().ok().or_else(|| {
        let at = httpdate::parse_http_date(value).ok()?;
        Some(at.duration_since(SystemTime::now()).unwrap_or_default().as_secs())
    })
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Failure> {
    serde_json::from_slice(body).map_err(|error| unusable(&error.to_string()))
}

fn unusable(why: &str) -> Failure {
    Failure::Unreachable(format!("its reply cannot be used: {why}"))
}
