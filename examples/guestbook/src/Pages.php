<?php

declare(strict_types=1);

namespace Guestbook;

/** The pages for people. */
final readonly class Pages
{
    private const PAGE_SIZE = 8;

    public function __construct(
        private Entries $entries,
        private Pictures $pictures,
        private Workers $workers,
        private Visitor $visitor,
    ) {
    }

    public function entries(Request $request): Response
    {
        $total = $this->entries->count();
        $pages = max(1, (int) ceil($total / self::PAGE_SIZE));
        $page = $request->number('page', 1);
        if ($page > $pages) {
            throw new Problem(404, 'The guestbook does not have that many pages yet.');
        }
        return Response::html(200, View::page('entries', [
            'title' => 'Guestbook',
            'entries' => $this->entries->page($page, self::PAGE_SIZE),
            'total' => $total,
            'page' => $page,
            'pages' => $pages,
            'name' => $this->visitor->name(),
            'notice' => $this->visitor->takeNotice(),
            'draft' => $this->visitor->takeDraft(),
            'token' => $this->visitor->token(),
        ]));
    }

    public function sign(Request $request): Response
    {
        $this->visitor->checkToken($request);
        $name = $this->visitor->name() ?: $request->text('name');
        // Browsers send line ends as CR LF, which would count twice.
        $message = str_replace("\r\n", "\n", $request->text('message'));
        if ($errors = Entries::errors($name, $message)) {
            return $this->backToTheForm(implode(' ', $errors), $message);
        }
        try {
            $picture = $this->pictures->keep($_FILES['picture'] ?? ['error' => UPLOAD_ERR_NO_FILE]);
        } catch (Problem $problem) {
            return $this->backToTheForm($problem->getMessage(), $message);
        }
        $this->entries->add($name, $message, $picture);
        $this->visitor->signIn($name);
        $this->visitor->notify('good', "Thank you, $name. Your entry is in the book.");
        return Response::seeOther('/');
    }

    public function signOut(Request $request): Response
    {
        $this->visitor->checkToken($request);
        $this->visitor->signOut();
        $this->visitor->notify('good', 'You are signed out.');
        return Response::seeOther('/');
    }

    public function about(): Response
    {
        $opcache = function_exists('opcache_get_status') ? @opcache_get_status(false) : false;
        return Response::html(200, View::page('about', [
            'title' => 'What serves this page',
            'facts' => [
                'Server' => $_SERVER['SERVER_SOFTWARE'] ?? 'unknown',
                'Protocol' => $_SERVER['SERVER_PROTOCOL'] ?? 'unknown',
                'PHP' => PHP_VERSION . ', ' . PHP_SAPI,
                'opcache' => $opcache
                    ? "{$opcache['opcache_statistics']['num_cached_scripts']} scripts, "
                        . number_format($opcache['memory_usage']['used_memory'] / 2 ** 20, 1) . ' MiB'
                    : 'off',
                'Memory of this request' => number_format(memory_get_peak_usage() / 1024) . ' KiB',
                'Time so far' => number_format(1000 * (microtime(true) - $_SERVER['REQUEST_TIME_FLOAT']), 1) . ' ms',
            ],
            'workers' => $this->workers->all(),
            'own_pid' => getmypid(),
        ]));
    }

    public static function problem(Problem $problem): Response
    {
        $page = View::page('problem', ['title' => $problem->getMessage(), 'status' => $problem->status]);
        $response = Response::html($problem->status, $page);
        return new Response($response->status, [...$response->headers, ...$problem->headers], $page);
    }

    private function backToTheForm(string $error, string $message): Response
    {
        $this->visitor->notify('bad', $error);
        $this->visitor->keepDraft(substr($message, 0, 8192));
        return Response::seeOther('/');
    }
}
