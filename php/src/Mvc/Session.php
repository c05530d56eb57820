<?php

declare(strict_types=1);

namespace Outboard\Mvc;

use Outboard\Request;

/** PHP's session, started on first use, with the CSRF token and messages for the next page. */
final class Session
{
    private const TOKEN = '_token';

    private const FLASHES = '_flashes';

    public function get(string $name, mixed $default = null): mixed
    {
        $this->begin();
        return $_SESSION[$name] ?? $default;
    }

    public function set(string $name, mixed $value): void
    {
        $this->begin();
        $_SESSION[$name] = $value;
    }

    public function remove(string $name): void
    {
        $this->begin();
        unset($_SESSION[$name]);
    }

    /** Stores a message for the next page. */
    public function flash(string $message): void
    {
        $this->set(self::FLASHES, [...$this->stored(), $message]);
    }

    /** @return list<string> the messages, which are then removed */
    public function flashes(): array
    {
        $flashes = $this->stored();
        $this->remove(self::FLASHES);
        return $flashes;
    }

    /** Sets a new id, against session fixation: call it at login. */
    public function renew(): void
    {
        $this->begin();
        session_regenerate_id(true);
    }

    public function end(): void
    {
        $this->begin();
        $_SESSION = [];
        session_destroy();
    }

    /** The token: forms send it as `_token`, scripts as the header X-CSRF-Token. */
    public function token(): string
    {
        $token = $this->get(self::TOKEN);
        if (!is_string($token)) {
            $this->set(self::TOKEN, $token = bin2hex(random_bytes(16)));
        }
        return $token;
    }

    /** @throws Problem 403 */
    public function checkToken(Request $request): void
    {
        $sent = $request->header('X-CSRF-Token') ?? $request->form('_token');
        $isKnown = $request->cookie((string) session_name()) !== null;
        if (!$isKnown || !is_string($sent) || !hash_equals($this->token(), $sent)) {
            throw new Problem(403, 'This form is no longer valid. Load the page again.');
        }
    }

    /** @return list<string> messages for the next page */
    private function stored(): array
    {
        $flashes = $this->get(self::FLASHES);
        return is_array($flashes) ? array_values(array_filter($flashes, is_string(...))) : [];
    }

    private function begin(): void
    {
        if (session_status() !== PHP_SESSION_ACTIVE) {
            session_start(['use_strict_mode' => '1', 'cookie_httponly' => '1', 'cookie_samesite' => 'Lax']);
        }
    }
}
