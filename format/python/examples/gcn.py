"""A graph convolutional network in PyTorch, trained on Prelift's batches: gcn.py BATCHES [EPOCHS]."""

import sys

import torch
import torch.nn.functional as F

import prelift


class GCN(torch.nn.Module):
    """Kipf and Welling's network: every layer multiplies, then takes the weighted sum that the batch has coefficients for."""

    def __init__(self, dims):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(a, b) for a, b in zip(dims, dims[1:]))

    def forward(self, batch):
        h = batch.x
        for i, (layer, block) in enumerate(zip(self.layers, batch.blocks)):
            h = block.aggregate(layer(F.relu(h) if i else h), "gcn")
        return h


def train(path, epochs=20, hidden=32, layers=2, lr=0.01):
    """Trains on a batch set; returns the model and its accuracy on the part test, by the exact evaluation blocks."""
    torch.manual_seed(1)
    data = prelift.open(path)
    model = GCN([data.num_features] + [hidden] * (layers - 1) + [data.num_classes])
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for epoch in range(epochs):
        for batch in data.epoch(epoch):
            batch = batch.torch(coefs="gcn", num_layers=layers)
            optimizer.zero_grad()
            F.cross_entropy(model(batch)[:batch.num_seeds][batch.train], batch.y[batch.train]).backward()
            optimizer.step()
    return model, accuracy(model, data, layers)


@torch.no_grad()
def accuracy(model, data, layers):
    """The share of test nodes whose class is right: layer by layer over all nodes, with all neighbours."""
    blocks = [b.torch(coefs="gcn", features=False).blocks[0] for b in data.eval_blocks()]
    h = torch.from_numpy(data.feature_rows(None).copy())
    for i, layer in enumerate(model.layers):
        wh = layer(F.relu(h) if i else h)
        h = torch.cat([b.aggregate(wh, "gcn") for b in blocks])
    test = data.part("test")
    return float((h.argmax(1).numpy()[test] == data.labels[test]).mean())


if __name__ == "__main__":
    _, score = train(sys.argv[1], *map(int, sys.argv[2:3]))
    print(f"test accuracy {100 * score:.1f} %")
