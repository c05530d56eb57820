<?php

declare(strict_types=1);

namespace Guestbook;

/**
 * The visitor's session: the name, a notice for the next page, and the token that forms carry.
 *
 * The session is opened when it is first used: the API and pictures need none.
 */
final class Visitor
{
    public function name(): string
    {
        return $this->session()['name'] ?? '';
    }

    public function signIn(string $name): void
    {
        $this->session();
        if ($this->name() === '') {
            // A session id from before the sign-in is worth nothing afterwards.
            session_regenerate_id(true);
        }
        $_SESSION['name'] = $name;
    }

    public function signOut(): void
    {
        $this->session();
        unset($_SESSION['name']);
        session_regenerate_id(true);
    }

    /** @param 'good'|'bad' $kind */
    public function notify(string $kind, string $text): void
    {
        $this->session();
        $_SESSION['notice'] = ['kind' => $kind, 'text' => $text];
    }

    /** The notice, once. */
    public function takeNotice(): ?array
    {
        $notice = $this->session()['notice'] ?? null;
        unset($_SESSION['notice']);
        return $notice;
    }

    /** Keeps what a form had, so that an error costs no visitor their words. */
    public function keepDraft(string $message): void
    {
        $this->session();
        $_SESSION['draft'] = $message;
    }

    public function takeDraft(): string
    {
        $draft = $this->session()['draft'] ?? '';
        unset($_SESSION['draft']);
        return $draft;
    }

    public function token(): string
    {
        $this->session();
        return $_SESSION['token'] ??= bin2hex(random_bytes(16));
    }

    /** Another site can send a form in the visitor's name, but cannot know the token. */
    public function checkToken(Request $request): void
    {
        if ($request->wasDropped()) {
            throw new Problem(413, 'The form is larger than this server takes.');
        }
        if (!hash_equals($this->token(), $request->text('token'))) {
            throw new Problem(403, 'This form is too old. Go back, reload the page and try again.');
        }
    }

    private function session(): array
    {
        if (session_status() !== PHP_SESSION_ACTIVE) {
            session_start([
                'name' => 'guestbook',
                'use_strict_mode' => true,
                'cookie_httponly' => true,
                'cookie_samesite' => 'Lax',
                'cookie_secure' => ($_SERVER['HTTPS'] ?? '') === 'on',
                'cookie_path' => View::url('/'),
            ]);
        }
        return $_SESSION;
    }
}
