<?php

declare(strict_types=1);

namespace App;

use App\Controller\Shop;
use Symfony\Bundle\FrameworkBundle\FrameworkBundle;
use Symfony\Bundle\FrameworkBundle\Kernel\MicroKernelTrait;
use Symfony\Bundle\TwigBundle\TwigBundle;
use Symfony\Component\DependencyInjection\Loader\Configurator\ContainerConfigurator;
use Symfony\Component\HttpKernel\Kernel as BaseKernel;
use Symfony\Component\Routing\Loader\Configurator\RoutingConfigurator;

final class Kernel extends BaseKernel
{
    use MicroKernelTrait;

    public function registerBundles(): iterable
    {
        return [new FrameworkBundle(), new TwigBundle()];
    }

    public function getProjectDir(): string
    {
        return dirname(__DIR__);
    }

    /** Also makes what every request needs, so that it is in the snapshot. */
    public function boot(): void
    {
        parent::boot();
        $this->getContainer()->get('http_kernel');
        $this->getContainer()->get('router')->getRouteCollection();
    }

    private function configureContainer(ContainerConfigurator $container): void
    {
        $container->extension('framework', ['secret' => 'of an example', 'router' => ['utf8' => true]]);
        $container->extension('twig', ['default_path' => '%kernel.project_dir%/templates', 'strict_variables' => true]);
        $container->services()->defaults()->autowire()->autoconfigure()
            ->set(Shop::class)->public()->tag('controller.service_arguments');
    }

    private function configureRoutes(RoutingConfigurator $routes): void
    {
        $routes->add('shop', '/')->controller([Shop::class, 'front'])->methods(['GET']);
        $routes->add('add', '/basket/{thing<\w+>}')->controller([Shop::class, 'add'])->methods(['POST']);
        $routes->add('process', '/process')->controller([Shop::class, 'process'])->methods(['GET']);
    }
}
