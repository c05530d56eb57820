<?php

declare(strict_types=1);

namespace App\Controller;

use App\Journal;
use Symfony\Component\HttpFoundation\JsonResponse;
use Symfony\Component\HttpFoundation\RedirectResponse;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\HttpFoundation\Session\SessionInterface;
use Symfony\Component\HttpKernel\Exception\NotFoundHttpException;
use Symfony\Component\HttpKernel\Exception\UnprocessableEntityHttpException;
use Symfony\Component\Routing\Generator\UrlGeneratorInterface;
use Twig\Environment;

/** Notes that a visitor keeps in the session. */
final class Notes
{
    private const LENGTH_MAX = 500;

    public function __construct(
        private readonly Environment $twig,
        private readonly UrlGeneratorInterface $urls,
        private readonly Journal $journal,
    ) {
    }

    public function list(Request $request): Response
    {
        return new Response($this->twig->render('notes.html.twig', ['notes' => self::of($request->getSession())]));
    }

    public function add(Request $request): Response
    {
        $text = trim((string) $request->request->get('text'));
        if ($text === '' || mb_strlen($text) > self::LENGTH_MAX) {
            throw new UnprocessableEntityHttpException('A note has 1 to ' . self::LENGTH_MAX . ' characters.');
        }
        $session = $request->getSession();
        $session->set('notes', [...self::of($session), $text]);
        return new RedirectResponse($this->urls->generate('notes'), Response::HTTP_SEE_OTHER);
    }

    public function show(int $number, Request $request): Response
    {
        $note = self::of($request->getSession())[$number - 1] ?? throw new NotFoundHttpException("There is no note $number.");
        return new JsonResponse(['number' => $number, 'text' => $note]);
    }

    public function worker(): Response
    {
        $this->journal->note('requested the worker');
        return new JsonResponse([
            'worker' => getmypid(),
            'requests_before' => $this->journal->requests(),
            'journal' => $this->journal->lines(),
        ]);
    }

    /** @return list<string> */
    private static function of(SessionInterface $session): array
    {
        return $session->get('notes', []);
    }
}
