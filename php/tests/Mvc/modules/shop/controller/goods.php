<?php

declare(strict_types=1);

namespace shop\controller;

use Outboard\Mvc\Route;
use Outboard\Mvc\WithoutToken;
use Outboard\Request;
use shop\Order;
use shop\Size;

#[Route('/goods')]
final class goods
{
    public function __construct(private readonly Request $request)
    {
    }

    public function actionIndex(): array
    {
        return ['method' => $this->request->method()];
    }

    #[Route('/{id}', 'item', 'GET')]
    public function show(int $id, float $factor = 1.5, ?Size $size = null): array
    {
        return ['id' => $id, 'factor' => $factor, 'size' => $size?->name];
    }

    #[Route('/{id}', '', 'DELETE')]
    public function remove(int $id): array
    {
        return ['removed' => $id];
    }

    #[Route('/{number}', '', 'PATCH'), WithoutToken]
    public function amend(int $number): array
    {
        return ['amended' => $number];
    }

    #[Route('/by/{name}/{rest:.+}', 'by')]
    public function by(string $rest, string $name): array
    {
        return [$name, $rest];
    }

    #[Route('', '', 'POST'), WithoutToken]
    public function order(Order $order): array
    {
        return ['name' => $order->name, 'pieces' => $order->pieces, 'size' => $order->size?->name];
    }
}
