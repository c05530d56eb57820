<?php

declare(strict_types=1);

namespace App\Controller;

use App\Basket;
use Symfony\Component\HttpFoundation\JsonResponse;
use Symfony\Component\HttpFoundation\Response;
use Twig\Environment;

/** A shop whose basket leaks wherever a process handles two requests. */
final class Shop
{
    private const THINGS = ['rope', 'lantern', 'compass'];

    public function __construct(private readonly Environment $twig)
    {
    }

    public function front(): Response
    {
        return new Response($this->twig->render('shop.html.twig', ['things' => self::THINGS, 'process' => getmypid()]));
    }

    public function add(string $thing): Response
    {
        return new JsonResponse(['basket' => Basket::with($thing), 'process' => getmypid()]);
    }

    public function process(): Response
    {
        return new JsonResponse(['process' => getmypid()]);
    }
}
