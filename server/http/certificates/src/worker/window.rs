//! When to renew certificates, as their authorities recommend (RFC 9773).

use super::{Worker, now_s};
use crate::keys;
use crate::name::Name;
use crate::plan::{Time, Window};
use outboard_config::Authority;
use outboard_log::Level;

impl Worker {
    /// Whether the recommendation of the authority is to be requested (RFC 9773).
    pub(crate) fn wants_window(&self, name: &Name, now_s: Time) -> bool {
        let record = name.record.borrow();
        let is_listed = |url: &String| {
            let authority = Authority::Acme(url.clone());
            self.config.borrow().authorities.contains(&authority)
        };
        record.authority.as_ref().is_some_and(is_listed)
            && name.validity().is_some()
            && record.window.is_none_or(|window| window.is_old(now_s))
    }

    /// Requests when to renew the certificate.
    pub(crate) async fn request_window(&self, name: &Name) {
        let config = self.config();
        let Some(url) = name.record.borrow().authority.clone() else { return };
        let window = async {
            let account = self.account(&url)?;
            let identifier = name.credential().and_then(|one| keys::identifier(one.facts()));
            let Some(identifier) = identifier else { return Ok(None) };
            let client = account.client(&self.http(), &self.storage, &config).await;
            let client = client.map_err(|failure| failure.to_string())?;
            client.renewal_window(&identifier).await.map_err(|failure| failure.to_string())
        };
        let (now_s, window) = (now_s(), window.await);
        let window = match window {
            Ok(Some((window, retry_after_s))) => Window::new(now_s, window, retry_after_s),
            Ok(None) => Window::none(now_s),
            Err(why) => {
                let text = format!("no recommended time of renewal for {}: {why}", name.text);
                self.write(Level::Debug, &text);
                let before = name.record.borrow().window;
                before.map_or_else(|| Window::none(now_s), |before| before.again(now_s))
            }
        };
        if let Err(why) = name.change(&self.storage, |record| record.window = Some(window)) {
            self.error(&why);
        }
    }
}
