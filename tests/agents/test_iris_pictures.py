"""IRIS's pictures: the tokenizer, and the loss that compares how they look."""

import pytest
import torch
from helpers.agents.small_iris import batch_for, make
from safetensors.torch import save_file

from curious_replay.agents.blocks.tokens.perceptual import STAGES, PerceptualLoss
from curious_replay.agents.blocks.tokens.tokenizer import Tokenizer


@pytest.mark.parametrize("pixels", [16, 32, 64, 128])
def test_a_picture_is_sixteen_tokens(pixels):
    with torch.random.fork_rng():
        tokenizer = Tokenizer(pixels, 4, 2, 1, codes=8, code=4)
        picture = torch.rand(2, pixels, pixels, 3) * 2 - 1
    seen = tokenizer(picture)
    assert seen.tokens.shape == (2, 16)
    assert seen.picture.shape == picture.shape
    assert torch.equal(tokenizer.read(picture), seen.tokens)
    drawn = tokenizer.draw(seen.tokens)
    torch.testing.assert_close(drawn, seen.picture.clamp(-1, 1))


def test_gradients_pass_through_the_choice_of_a_code():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        tokenizer = Tokenizer(32, 4, 2, 1, codes=8, code=4)
        picture = torch.rand(2, 32, 32, 3) * 2 - 1
    loss = (tokenizer(picture).picture - picture).abs().mean()
    first, book = tokenizer.encoder[0].weight, tokenizer.codebook
    of_encoder, of_book = torch.autograd.grad(loss, [first, book], allow_unused=True)
    assert of_encoder.abs().max() > 0
    assert of_book is None  # the codebook learns from its own loss only


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """Files in the two formats, of random weights: paths of VGG16's and of LPIPS's."""
    folder = tmp_path_factory.mktemp("weights")
    generator = torch.Generator().manual_seed(0)
    vgg, inputs = {"classifier.0.weight": torch.zeros(3)}, 3
    for numbers, channels in STAGES:
        for number in numbers:
            scale = (2 / (9 * inputs)) ** 0.5
            weight = torch.randn(channels, inputs, 3, 3, generator=generator) * scale
            vgg[f"features.{number}.weight"] = weight
            vgg[f"features.{number}.bias"] = torch.zeros(channels)
            inputs = channels
    lpips = {f"lin{i}.model.1.weight": torch.ones(1, c, 1, 1) for i, (_, c) in enumerate(STAGES)}
    save_file(vgg, folder / "vgg.safetensors")
    torch.save(lpips, folder / "lpips.pth")
    return folder


def test_pictures_are_compared_by_how_they_look(weights):
    paths = (str(weights / "vgg.safetensors"), str(weights / "lpips.pth"))
    perceptual = PerceptualLoss(*paths, torch.device("cpu"))
    left = torch.rand(2, 32, 32, 3, generator=torch.Generator().manual_seed(0)) * 2 - 1
    assert perceptual(left, left) == 0
    near, far = perceptual(left, left * 0.9), perceptual(left, -left)
    assert 0 < near < far
    torch.testing.assert_close(perceptual(-left, left), far)
    moving = (left * 0.9).requires_grad_()
    (gradient,) = torch.autograd.grad(perceptual(left, moving), moving)
    assert gradient.isfinite().all() and gradient.abs().max() > 0
    black = torch.full_like(left, -1, requires_grad=True)
    (gradient,) = torch.autograd.grad(perceptual(left, black), black)
    assert gradient.isfinite().all()

    agent = make(vgg=paths[0], lpips=paths[1], model_after=9, actor_after=9)
    assert agent.update(batch_for(agent)).metrics["tokenizer/perceptual"] > 0
    assert agent.remarks["perceptual_loss"].startswith("LPIPS")
    assert agent.tensors().keys() == make().tensors().keys() | {
        name for name in agent.tensors() if name.startswith("tokenizer_adam")
    }  # the weights are no part of its state


def test_without_the_files_there_is_no_perceptual_loss():
    agent = make()
    assert agent.remarks["perceptual_loss"].startswith("none")
    metrics = agent.update(batch_for(agent)).metrics
    assert "tokenizer/perceptual" not in metrics
    parts = sum(metrics[f"tokenizer/{n}"] for n in ("reconstruction", "codebook", "commitment"))
    assert metrics["tokenizer/loss"] == pytest.approx(parts)


def test_the_error_of_pictures_is_absolute_or_squared():
    pictures = torch.rand(2, 32, 32, 3, generator=torch.Generator().manual_seed(0)) * 2 - 1
    for kind, power in (("absolute", 1), ("squared", 2)):
        agent = make(reconstruction=kind)
        with torch.no_grad():
            expected = (pictures - agent.tokenizer(pictures).picture).abs().pow(power).mean()
        found = agent.learn_to_see(pictures)["tokenizer/reconstruction"]
        torch.testing.assert_close(found, expected)


def test_files_that_do_not_fit_are_refused(weights, tmp_path):
    vgg, lpips = str(weights / "vgg.safetensors"), str(weights / "lpips.pth")

    def refused(message, vgg=vgg, lpips=lpips):
        with pytest.raises(ValueError, match=message):
            PerceptualLoss(str(vgg), str(lpips), torch.device("cpu"))

    refused("vgg: there is no file .*nowhere", vgg=tmp_path / "nowhere")
    refused("vgg: .* has no tensor features.0.weight", vgg=lpips)
    wrong = tmp_path / "wrong.safetensors"
    save_file({"lin0.model.1.weight": torch.zeros(1, 3, 1, 1)}, wrong)
    refused(r"lin0.model.1.weight .* must have the shape \[1, 64, 1, 1\], got \[1, 3, 1, 1\]",
            lpips=wrong)  # fmt: skip
    for name in ("text.pth", "text.safetensors"):
        (tmp_path / name).write_text("no weights")
        refused("lpips: .* is neither safetensors nor", lpips=tmp_path / name)
    torch.save(print, tmp_path / "code.pth")
    refused("lpips: .* is neither safetensors nor", lpips=tmp_path / "code.pth")
